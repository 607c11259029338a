-- bisect: where a function of one number goes through zero, for the closed forms of scenes.

---The number between low and high where f goes through zero, by 60 bisections.
---@param f fun(x: number): number    below zero at low, not below at high
---@param low number
---@param high number
---@return number
return function(f, low, high)
  for _ = 1, 60 do
    local middle = (low + high) / 2
    if f(middle) < 0 then low = middle else high = middle end
  end
  return low
end
