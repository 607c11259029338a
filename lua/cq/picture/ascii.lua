-- ascii: text in the letters of pictures, which are those of ASCII: "µm ± 0.5" is "um +- 0.5".

-- the letters U+00C0 to U+017E without their accents; those with a space here are in SIGNS
local LATIN = "AAAAAA CEEEEIIIIDNOOOOO OUUUUY  aaaaaa ceeeeiiiidnooooo ouuuuypyAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHh"
  .. "IiIiIiIiIi  JjKkkLlLlLlLlLlNnNnNnnNnOoOoOo  RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZz"
-- the letters from U+03B1 on; their capitals stand 32 places before
local GREEK = { "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
  "nu", "xi", "omicron", "pi", "rho", "sigma", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega" }
-- raised characters; a "^" stands before the first of several
local RAISED = { ["⁰"] = "0", ["¹"] = "1", ["²"] = "2", ["³"] = "3", ["⁴"] = "4", ["⁵"] = "5", ["⁶"] = "6",
  ["⁷"] = "7", ["⁸"] = "8", ["⁹"] = "9", ["⁺"] = "+", ["⁻"] = "-", ["ⁿ"] = "n" }
local NO_BREAK, THIN, NARROW, OHM = "\194\160", "\226\128\137", "\226\128\175", "\226\132\166"
local SIGNS = { ["±"] = "+-", ["×"] = "x", ["÷"] = "/", ["·"] = "*", ["•"] = "*", ["°"] = "deg", ["µ"] = "u",
  ["μ"] = "u", ["Æ"] = "AE", ["æ"] = "ae", ["Œ"] = "OE", ["œ"] = "oe", ["Ĳ"] = "IJ", ["ĳ"] = "ij", ["ß"] = "ss",
  ["Þ"] = "Th", ["þ"] = "th", ["−"] = "-", ["‐"] = "-", ["‑"] = "-", ["–"] = "-", ["—"] = "-", ["…"] = "...",
  ["‘"] = "'", ["’"] = "'", ["′"] = "'", ["“"] = '"', ["”"] = '"', ["„"] = '"', ["″"] = '"', ["«"] = '"', ["»"] = '"',
  ["≤"] = "<=", ["≥"] = ">=", ["≠"] = "!=", ["≈"] = "~", ["→"] = "->", ["←"] = "<-", ["∞"] = "inf", ["√"] = "sqrt",
  ["½"] = "1/2", ["¼"] = "1/4", ["¾"] = "3/4", [NO_BREAK] = " ", [THIN] = " ", [NARROW] = " ", [OHM] = "Ohm" }

-- A character beyond ASCII, given by its bytes, as the nearest text in ASCII.
local function plain(char)
  if SIGNS[char] then return SIGNS[char] end
  local first, second = char:byte(1, 2)
  local code = #char == 2 and first >= 192 and 64 * (first - 192) + second - 128 or 0
  if code >= 0x300 and code < 0x370 then return "" end                     -- an accent that follows its letter
  if code >= 0xC0 and code < 0xC0 + #LATIN then return LATIN:sub(code - 0xBF, code - 0xBF) end
  local capital = GREEK[code - 0x390]
  return capital and capital:gsub("^%l", string.upper) or GREEK[code - 0x3B0] or "?"
end

---Text whose characters beyond ASCII are replaced by the nearest that a picture can show: e for é, ^2 for ², alpha for
---α, ? where nothing is near.
---@param text string      in UTF-8
---@return string
local function ascii(text)
  local raised_to                             -- where the last raised character ended
  return (text:gsub("()([\128-\255][\128-\191]*)()", function(from, char, to)
    local raised = RAISED[char]
    if not raised then return plain(char) end
    local before = raised_to == from and "" or "^"
    raised_to = to
    return before .. raised
  end))
end

return ascii
