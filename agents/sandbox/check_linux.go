//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The Landlock ABI version that each promise needs.
const (
	abiFiles   = 3 // truncating
	abiSignals = 6 // scopes
)

// Check returns which promises this kernel can hold. Nothing runs unless all hold or the mode is [Off].
func Check() []Promise {
	abi, _ := landlock.LandlockGetABIVersion() // on error, 0
	return promises(abi, filters())
}

func promises(abi int, filters bool) []Promise {
	sockets := Promise{promiseSockets, filters, "this kernel takes no seccomp filters"}
	tcp := sockets // without sockets there is no TCP
	tcp.Name = promiseTCP
	all := []Promise{fromABI(promiseFiles, abi, abiFiles), tcp, sockets, fromABI(promiseSignals, abi, abiSignals)}
	for i := range all {
		if all[i].Holds {
			all[i].Why = ""
		}
	}
	return all
}

func fromABI(name string, abi, needed int) Promise {
	why := fmt.Sprintf("Landlock is version %d here, and %d is needed", abi, needed)
	if abi <= 0 {
		why = "Landlock is missing, or switched off (see the kernel's parameter lsm=)"
	}
	return Promise{name, abi >= needed, why}
}

// filters reports whether the kernel supports the seccomp filters that we use.
func filters() bool {
	takes := func(action uint32) bool {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
		return errno == 0
	}
	return takes(unix.SECCOMP_RET_ERRNO) && takes(unix.SECCOMP_RET_KILL_PROCESS) && takes(unix.SECCOMP_RET_USER_NOTIF)
}
