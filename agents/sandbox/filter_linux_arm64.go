package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// sysChmod is chmod, which this machine has not.
const sysChmod = -1

// ownersHere are the calls that set an owner, besides those that every machine has.
var ownersHere map[uint32]uint32

// refusedHere are those of [refused] that only this machine has.
var refusedHere []uint32
