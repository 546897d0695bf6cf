package sandbox

import "golang.org/x/sys/unix"

// callsHere are cases of calls that newer architectures lack.
var callsHere = []callCase{
	{"chmod", auditArch, unix.SYS_CHMOD, [6]uint64{1, 0o755}, asked, asked},
	{"setuid by chmod", auditArch, unix.SYS_CHMOD, [6]uint64{1, 0o4755}, denied, denied},
	{"open", auditArch, unix.SYS_OPEN, [6]uint64{1, unix.O_CREAT, 0o644}, permit, permit},
	{"open to read, without a mode", auditArch, unix.SYS_OPEN, [6]uint64{1, 0, 0o4755}, permit, permit},
	{"a setuid file by open", auditArch, unix.SYS_OPEN, [6]uint64{1, unix.O_CREAT, 0o4755}, denied, denied},
	{"a setgid file by creat", auditArch, unix.SYS_CREAT, [6]uint64{1, 0o2755}, denied, denied},
	{"a setuid node", auditArch, unix.SYS_MKNOD, [6]uint64{1, unix.S_IFREG | 0o4755}, denied, denied},
	{"a setgid folder by mkdir", auditArch, unix.SYS_MKDIR, [6]uint64{1, 0o2755}, denied, denied},
	{"another's file by chown", auditArch, unix.SYS_CHOWN, [6]uint64{1, 12345, 0xffffffff}, denied, denied},
	{"another's link", auditArch, unix.SYS_LCHOWN, [6]uint64{1, 12345, 0xffffffff}, denied, denied},
}
