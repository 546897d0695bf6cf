package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// sysChmod is chmod, which newer architectures lack.
const sysChmod = unix.SYS_CHMOD

// ownersHere maps the calls that set an owner, besides the common ones, to the user id's argument.
var ownersHere = map[uint32]uint32{unix.SYS_CHOWN: 1, unix.SYS_LCHOWN: 1}

// Calls of this architecture that set a mode or create something with one.
var (
	modesHere   = map[uint32]uint32{unix.SYS_CHMOD: 1}
	createsHere = map[uint32]uint32{unix.SYS_MKNOD: 1, unix.SYS_MKDIR: 1, unix.SYS_CREAT: 1}
	opensHere   = map[uint32]uint32{unix.SYS_OPEN: 2}
)

// refusedHere are those of [refused] that only this architecture has.
var refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL}
