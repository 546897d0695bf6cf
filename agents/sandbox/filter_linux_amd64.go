package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// sysChmod is chmod, which newer machines have not.
const sysChmod = unix.SYS_CHMOD

// ownersHere are the calls that set an owner, by the place of the user's id, besides those that every machine has.
var ownersHere = map[uint32]uint32{unix.SYS_CHOWN: 1, unix.SYS_LCHOWN: 1}

// What sets a mode, or makes something with one, besides what every machine has.
var (
	modesHere  = map[uint32]uint32{unix.SYS_CHMOD: 1}
	birthsHere = map[uint32]uint32{unix.SYS_MKNOD: 1, unix.SYS_MKDIR: 1, unix.SYS_CREAT: 1}
	opensHere  = map[uint32]uint32{unix.SYS_OPEN: 2}
)

// refusedHere are those of [refused] that only this machine has.
var refusedHere = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL}
