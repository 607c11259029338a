-- video: frames piped into ffmpeg where it is there; else they stay as numbered PNG files.
local method = require "cq.base.method"
local ffi = require "ffi"
local atomic_file = require "cq.base.atomic_file"
local is = require "cq.base.schema"
local host = require "cq.host"
local message = require "cq.base.message"
local place = require "cq.base.place"
local text = require "cq.base.text"

---@class cq.Video
---@field path string         of the film, or of the folder of frames
---@field frames integer      so far
---@field encoded boolean     a film is being made; false: only frames
local Video = { __name = "cq.Video" }
Video.__index = Video

local video = {}

-- what each kind of file asks of ffmpeg
local formats = {
  mp4 = "-c:v libx264 -pix_fmt yuv420p -crf 18 -preset veryfast -movflags +faststart -f mp4",
  mkv = "-c:v libx264 -pix_fmt yuv420p -crf 18 -preset veryfast -f matroska",
  webm = "-c:v libvpx-vp9 -pix_fmt yuv420p -crf 30 -b:v 0 -deadline realtime -cpu-used 6 -f webm",
  gif = "-filter_complex '[0:v]split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=4' -f gif",
}
local kinds = { "gif", "mkv", "mp4", "webm" }

---@class cq.Picture.video.def
---@field path string               ends in .mp4, .mkv, .webm or .gif; a name without a slash is in the run's folder
---@field fps? number               frames a second, 30
---@field keep_frames? boolean      as PNG files too

local spec = is.define("cq.Picture.video", {
  path = is.string(), fps = is.number { above = 0, max = 240, default = 30 },
  keep_frames = is.boolean { default = false },
})

-- Is ffmpeg on the shell's path?
local function has_ffmpeg()
  local code = os.execute "command -v ffmpeg >/dev/null 2>&1"
  return code == 0 or code == true      -- by the flavour of LuaJIT
end

-- The text of a file, empty if there is none.
local function read_all(path)
  local file = io.open(path, "rb")
  if not file then return "" end
  local all = file:read "*a"
  file:close()
  return all
end

-- Makes the folder that keeps the frames as PNG files, and sets self.folder. Errors: it cannot be made.
local function make_frame_folder(self)
  self.folder = self.path:gsub("%.%w+$", "") .. "_frames"
  local made, problem = host.make_folder(self.folder)
  if not made then is.fail("cq.Picture.video: cannot make the folder '%s': %s", self.folder, tostring(problem)) end
end

-- A path quoted for the shell so that it is a file to ffmpeg, whatever its name: 10:30/x.mp4 would be a protocol, and
-- -y.mp4 an option.
local function file_of(path) return text.quoted("file:" .. path) end

-- Starts ffmpeg in a shell, for frames of width by height pixels, and sets self.pipe. The shell stays after ffmpeg and
-- drains the pipe: an ffmpeg that gives up early, or hears a Ctrl-C before the program does, must not kill the program
-- by a broken pipe.
local function start(self, width, height)
  local command = ("trap '' INT TERM; ffmpeg -hide_banner -loglevel error -nostdin -y -f rawvideo -pix_fmt rgba -s %dx%d -r %g -i pipe:0 %s %s 2>%s; "
    .. "{ echo $? >%s; } 2>/dev/null; cat >/dev/null")
    :format(width, height, self.fps, formats[self.kind], file_of(self.part), text.quoted(self.log),
    text.quoted(self.status))
  local pipe, problem = io.popen(command, "w")
  if not pipe then is.fail("cq.Picture.video: cannot start ffmpeg: %s", tostring(problem)) end
  self.pipe, self.width, self.height = pipe, width, height
end

---A film, or a folder of frames where ffmpeg is missing (a note says so). The kind is that of the file's name: mp4,
---mkv, webm or gif. Nothing is written under cqlua check, and under MPI on ranks but the first. Errors: a wrong ending;
---a file that cannot be written.
---@param fields cq.Picture.video.def
---@return cq.Video
function video.new(fields)
  local self = setmetatable(spec(fields), Video)
  self.kind = (self.path:match "%.(%w+)$" or ""):lower()
  if not formats[self.kind] then
    is.fail("cq.Picture.video: the path must end in .%s, got \"%s\"", table.concat(kinds, ", ."), self.path)
  end
  self.path = place.of(self.path)
  self.frames, self.part = 0, atomic_file.of(self.path)
  if place.is_left_out() then return self end
  self.log, self.status = atomic_file.of(self.path .. ".log"), atomic_file.of(self.path .. ".status")
  atomic_file.sweep_of(self.path)
  local problem = atomic_file.problem(self.path)       -- told before any frame is drawn
  if problem then is.fail("cq.Picture.video: cannot write '%s': %s", self.path, problem) end
  self.encoded = has_ffmpeg()
  if not self.encoded or self.keep_frames then make_frame_folder(self) end
  return self
end

-- The video in one line: path and number of frames.
function Video:__tostring() return ("cq.Video { %s, %s }"):format(self.path, text.count(self.frames, "frame")) end

---Appends a picture. Errors: a picture of another size than the first; for a film one of odd width or height; a video
---that is closed.
---@param canvas cq.Canvas
---@return cq.Video
function Video:add(canvas)
  is.argument("video:add", "picture", is.instance "cq.Canvas", canvas)
  if self.closed then is.fail("video:add: the video '%s' is finished", self.path) end
  if self.frames > 0 and (canvas.width ~= self.width or canvas.height ~= self.height) then
    is.fail("video:add: frames have one size, the first had %d x %d pixels, this one %d x %d", self.width, self.height,
      canvas.width, canvas.height)
  end
  local even = canvas.width % 2 == 0 and canvas.height % 2 == 0
  if self.encoded and not even then
    is.fail("video:add: a video needs an even number of pixels along both sides, got %d x %d", canvas.width,
      canvas.height)
  end
  self.width, self.height = canvas.width, canvas.height
  self.frames = self.frames + 1
  if self.folder then canvas:write(("%s/%06d.png"):format(self.folder, self.frames)) end
  if self.encoded then
    if not self.pipe then start(self, canvas.width, canvas.height) end
    self.pipe:write(ffi.string(canvas:pixels(), 4 * canvas.width * canvas.height))
  end
  return self
end

-- The last three lines of a log, joined by semicolons.
local function last_lines(log)
  local lines = {}
  for line in log:gmatch "[^\r\n]+" do lines[#lines + 1] = line end
  return table.concat(lines, "; ", math.max(1, #lines - 2))
end

-- A text that says why nothing more can be written beside the film, tried on the log, which is overwritten: as on a
-- full disk, which ffmpeg does not tell in its own words; nil: it can.
local function cannot_write(self)
  local file, problem = io.open(self.log, "wb")
  if not file then return problem end
  local fine
  fine, problem = file:write(("."):rep(4096))
  if fine then fine, problem = file:flush() end
  file:close()
  return not fine and problem or nil
end

-- Removes the files that were written beside the video: ffmpeg's log and status, and the unfinished film.
local function remove_files(self)
  os.remove(self.log)
  os.remove(self.status)
  os.remove(self.part)
end

-- ffmpeg ends with code 0 also where the last bytes of the film could not be written, and only says so
local cut_short = {
  "Error writing", "Error closing", "Error submitting", "No space left", "File too large", "quota exceeded",
  "Input/output error",
}

-- Does ffmpeg's log say that the file could not be written whole?
local function is_cut_short(log)
  for _, words in ipairs(cut_short) do
    if log:find(words, 1, true) then return true end
  end
  return false
end

-- Closes the pipe to ffmpeg and moves the film to its place. Errors: ffmpeg failed, with the last lines of its log.
local function finish(self)
  self.pipe:close()
  local status, log = read_all(self.status):match "%d+", read_all(self.log)
  if status ~= "0" or is_cut_short(log) then
    local said = log ~= "" and last_lines(log) or cannot_write(self) or "it said nothing"
    remove_files(self)
    is.fail("cq.Picture.video: ffmpeg failed to make '%s'%s: %s", self.path,
      status and (" (exit code %s)"):format(status) or "", said)
  end
  os.remove(self.log)
  os.remove(self.status)
  local renamed, problem = os.rename(self.part, self.path)
  if not renamed then is.fail("cq.Picture.video: cannot write '%s': %s", self.path, tostring(problem)) end
end

-- Removes frames of an earlier, longer film from the folder of frames.
local function remove_later_frames(self)
  for _, name in ipairs(host.entries(self.folder) or {}) do
    local number = name:match "^(%d%d%d%d%d%d)%.png$"
    if number and tonumber(number) > self.frames then os.remove(self.folder .. "/" .. name) end
  end
end

-- The command, as text, by which a user makes the film of its frames.
local function command_of(self)
  return ("ffmpeg -framerate %g -i %s -pix_fmt yuv420p %s"):format(self.fps, text.quoted(self.folder .. "/%06d.png"),
    text.quoted(self.path))
end

---Finishes the film. Returns its path, or that of the folder of frames where no film could be made, with a note.
---Errors: no frame was added; ffmpeg failed.
---@return string path
function Video:close()
  if self.closed then return self.result end
  self.closed = true
  if self.frames == 0 then is.fail("video:close: '%s' has no frames, add one first", self.path) end
  if self.folder then remove_later_frames(self) end
  if self.encoded then finish(self) end
  self.result = (self.encoded or not self.folder) and self.path or self.folder
  if not self.encoded and self.folder then
    message.note("ffmpeg is not installed (apt install ffmpeg): %s of %s lie in %s, of which this makes it: %s",
      text.count(self.frames, "frame"), self.path, self.folder, command_of(self))
  end
  return self.result
end

---Gives the film up and removes its files, but for frames that were to be kept.
function Video:discard()
  if self.closed then return end
  self.closed = true
  if self.pipe then self.pipe:close() end
  if self.log then remove_files(self) end
end

method.guard(Video, "video")

return video
