-- filesystem: on which file systems several processes can share an SQLite file. Over a network, locks are not seen by
-- other machines, or come late, and the file is damaged in the end.
local ffi = require "ffi"
local is = require "cq.base.schema"

-- struct statfs begins with the type as a long on all Linux machines that LuaJIT knows
ffi.cdef "int statfs(const char *path, long *out);"

local filesystem = {}

-- f_type of those that reach over a network: linux/magic.h, and the sources of Lustre, GPFS and BeeGFS
local networked = {
  [0x6969] = "NFS", [0x0bd00bd0] = "Lustre", [0x47504653] = "GPFS", [0xff534d42] = "CIFS", [0xfe534d42] = "SMB",
  [0x517b] = "SMB", [0x00c36400] = "Ceph", [0x5346414f] = "AFS", [0x6b414653] = "AFS", [0x01021997] = "9P",
  [0x19830326] = "BeeGFS", [0x20030528] = "OrangeFS", [0xaad7aaea] = "PanFS", [0x73757245] = "Coda",
  [0x7461636f] = "OCFS2", [0x01161970] = "GFS2",
}

---The number of the kind of file system that a folder is on, from statfs; nil if statfs fails.
---@param path string
---@return integer?
function filesystem.type(path)
  local out = ffi.new "long[64]"
  if ffi.C.statfs(path, out) ~= 0 then return nil end
  return tonumber(ffi.cast("uint32_t", out[0]))
end

---Raises an error if a folder is on a network file system, where processes cannot share a file.
---@param path string
---@param type? integer     number of the kind of file system; the folder's unless given
function filesystem.check(path, type)
  local name = networked[type or filesystem.type(path) or 0]
  if not name then return end
  is.fail("the folder %s is on %s, where SQLite's locks do not work: a study that several processes share would be "
    .. "damaged there. Put it on a local disk with --out (a folder of /tmp or $SLURM_TMPDIR), or keep it on a server "
    .. "with --store", path, name)
end

return filesystem
