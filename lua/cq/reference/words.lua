-- words: what users of other simulators look for, and the pages that hold it here. Asked only where the reference itself
-- does not say the word.
return {
  { words = "mooney rivlin ogden gent yeoh hyperelastic constitutive stvk svk lame mu lambda bulk shear elastic plastic",
    see = { "cq.Material" } },
  { words = "collision collider terrain heightmap ground obstacles coulomb", see = { "cq.Boundary" } },
  { words = "pneumatic cable tendon spring motor torque fiber fibre", see = { "cq.Actuator" } },
  { words = "policy network neural agent rnn pid", see = { "cq.Controller" } },
  { words = "sensor sensing observation observations proprioception", see = { "cq.Observer" } },
  { words = "loss cost reward objective episode training train", see = { "cq.Experiment", "cq.value_and_grad" } },
  { words = "sgd lbfgs learning lr rmsprop", see = { "cq.Optimizer" } },
  { words = "backprop backpropagation autodiff autograd jacobian adjoint differentiate derivative",
    see = { "cq.value_and_grad", "cq.grad" } },
  { words = "finite differences gradcheck", see = { "cq.check_gradient" } },
  { words = "numpy array ndarray matrix vector einsum torch", see = { "cq.Tensor" } },
  { words = "animation movie gif mp4 screenshot gui viewer visualize visualise", see = { "run:render", "cq.Picture" } },
  { words = "timestep cfl substepping mpm grid resolution simulate simulation simulator",
    see = { "cq.World", "world:rollout" } },
  { words = "geometry cad sdf stl obj png voxel", see = { "cq.Shape" } },
  { words = "fix fixed anchor clamp dirichlet", see = { "cq.Robot" } },
  { words = "checkpointing gpu cuda parallel", see = { "world:plan", "cq.World" } },
  { words = "argv arguments cli flags", see = { "cq.option" } },
}
