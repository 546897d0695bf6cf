package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// sysChmod is chmod, which this machine has not.
const sysChmod = -1

// What only other machines have: see the file of amd64.
var (
	ownersHere, modesHere, birthsHere, opensHere map[uint32]uint32
	refusedHere                                  []uint32
)
