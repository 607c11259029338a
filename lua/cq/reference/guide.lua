-- guide: the pages of docs/, which the reference names. docs/README.md lists them in order,
-- each as a link with a sentence:
--
--   1. [Install](install.md): build it, run a script, find the answer to a question.
local host = require "cq.host"

local guide = {}

---The pages of the guide, in the order of docs/README.md; none where the program was installed without them.
---@return { name: string, title: string, text: string }[]   name: the path of the file, as "docs/install.md"
function guide.pages()
  local pages, file = {}, io.open(host.root .. "/docs/README.md")
  if not file then return pages end
  for line in file:lines() do
    local title, name, text = line:match "^%d+%. %[(.-)%]%((.-)%): (.*)%.$"
    if title then pages[#pages + 1] = { name = "docs/" .. name, title = title, text = text } end
  end
  file:close()
  return pages
end

return guide
