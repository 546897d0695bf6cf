//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter's answers, call by call, by the instruction set's own machine. It reads big-endian where the kernel reads the
// machine's order, so what it looks at is laid out for it.
func TestFilter(t *testing.T) {
	const permit, denied, missing, dead = "allow", "EPERM", "ENOSYS", "kill"
	answers := map[uint32]string{unix.SECCOMP_RET_ALLOW: permit, refuse.Val: denied, absent.Val: missing, kill.Val: dead}
	for _, c := range []struct {
		name       string
		arch       uint32
		number     uint32
		args       [6]uint64
		shut, open string
	}{
		{"read", auditArch, unix.SYS_READ, [6]uint64{}, permit, permit},
		{"another table", unix.AUDIT_ARCH_I386, unix.SYS_READ, [6]uint64{}, dead, dead},
		{"x32", auditArch, 0x40000000 | unix.SYS_READ, [6]uint64{}, missing, missing},
		{"socket", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, denied, permit},
		{"socket of IPv6", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET6}, denied, permit},
		{"socket of unix", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}, denied, denied},
		{"socket of unix, wide", auditArch, unix.SYS_SOCKET, [6]uint64{unix.AF_INET<<32 | unix.AF_UNIX}, denied, denied},
		{"connect", auditArch, unix.SYS_CONNECT, [6]uint64{}, denied, permit},
		{"a pair", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{1, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, permit, permit},
		{"a pair of datagrams", auditArch, unix.SYS_SOCKETPAIR, [6]uint64{1, unix.SOCK_DGRAM}, denied, denied},
		{"clone3", auditArch, unix.SYS_CLONE3, [6]uint64{}, missing, missing},
		{"a thread", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, permit, permit},
		{"a namespace", auditArch, unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER}, denied, denied},
		{"typing", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, denied, denied},
		{"typing, wide", auditArch, unix.SYS_IOCTL, [6]uint64{0, 7<<32 | unix.TIOCSTI}, denied, denied},
		{"pasting", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCLINUX}, denied, denied},
		{"a window's size", auditArch, unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, permit, permit},
		{"its own limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{}, permit, permit},
		{"another's limits", auditArch, unix.SYS_PRLIMIT64, [6]uint64{7}, denied, denied},
		{"io_uring", auditArch, unix.SYS_IO_URING_SETUP, [6]uint64{}, denied, denied},
		{"ptrace", auditArch, unix.SYS_PTRACE, [6]uint64{}, denied, denied},
	} {
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[offNumber:], c.number)
		binary.BigEndian.PutUint32(data[offArch:], c.arch)
		for i, arg := range c.args {
			binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(arg))
			binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(arg>>32))
		}
		for network, want := range map[bool]string{false: c.shut, true: c.open} {
			vm, err := bpf.NewVM(filter(network, ask))
			if err != nil {
				t.Fatal(err)
			}
			got, err := vm.Run(data)
			if err != nil || answers[uint32(got)] != want {
				t.Errorf("%s, network %v: %q (%#x, %v), want %q", c.name, network, answers[uint32(got)], got, err, want)
			}
		}
	}
}

// What a kernel lacks is said.
func TestPromises(t *testing.T) {
	for _, c := range []struct {
		abi     int
		filters bool
		lacking string
	}{
		{7, true, ""},
		{6, true, ""},
		{5, true, promiseSignals},
		{2, true, promiseFiles + "," + promiseSignals},
		{0, true, promiseFiles + "," + promiseSignals},
		{7, false, promiseTCP + "," + promiseSockets},
	} {
		var lacking []string
		for _, p := range promises(c.abi, c.filters) {
			if !p.Holds {
				lacking = append(lacking, p.Name)
			}
			if p.Holds == (p.Why != "") {
				t.Errorf("%+v", p)
			}
		}
		if got := strings.Join(lacking, ","); got != c.lacking {
			t.Errorf("version %d, filters %v: lacking %q, want %q", c.abi, c.filters, got, c.lacking)
		}
	}
	if _, err := install([]bpf.Instruction{bpf.RawInstruction{Op: 0xffff}}, unix.SECCOMP_FILTER_FLAG_TSYNC); err == nil {
		t.Error("what is no filter is installed")
	}
}
