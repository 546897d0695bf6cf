package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// sysChmod is chmod, which this architecture lacks.
const sysChmod = -1

// Only other architectures have these: see the amd64 file.
var (
	ownersHere, modesHere, createsHere, opensHere map[uint32]uint32
	refusedHere                                   []uint32
)
