-- quantity: pages of what can be read of particles, from the engine's list of it: what each is, its unit, and how it is
-- read.
local readout = require "cq.state.readout"

local quantity = {}

---What the section says, in front of the pages.
quantity.about = {
  "What can be read of particles: fields of the state, and what follows from them and from the materials. All of it is",
  "differentiated to positions, velocities, F and the materials' constants.",
}

-- by rank: the shape for all particles of a group, and of the mean over it
local shapes = {
  [0] = { "{particles}", "one number" }, { "{particles, dim}", "{dim}" }, { "{particles, dim, dim}", "{dim, dim}" },
  { "{particles}, in 3D {particles, 3}", "one number, in 3D {3}" },
}

---A page for each quantity that can be read of particles, in the order of the engine's list.
---@return { name: string, quantity: string, call: string, text: string[] }[]
function quantity.pages()
  local out = {}
  for k, info in ipairs(readout.quantities) do
    local name, shape = info.name, shapes[info.rank]
    local text = {
      ("%s [%s]. It is read by"):format(info.meaning:gsub("^%l", string.upper), info.unit), "",
      ('  state:gather(which, "%s")   %s'):format(name, shape[1]),
      ('  state:mean(which, "%s")     %s, a row for each group of a list'):format(name, shape[2]),
    }
    if readout.is_number(info) then
      text[#text + 1] = ('  run:render("film.mp4", { colour = "%s" })'):format(name)
    end
    out[k] = { name = "quantity " .. name, quantity = name, call = ('quantity "%s"'):format(name), text = text }
  end
  return out
end

return quantity
