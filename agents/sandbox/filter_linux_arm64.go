package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are those of [refused] that only this machine has.
var refusedHere []uint32
