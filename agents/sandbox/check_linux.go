//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What of Landlock each promise needs, by the version of its ABI.
const (
	abiFiles   = 3 // truncating
	abiSignals = 6 // scopes
)

// Check tells which promises this kernel holds. All are needed for anything to run, unless the mode is [Off].
func Check() []Promise {
	abi, _ := landlock.LandlockGetABIVersion() // with an error, none
	return promises(abi, filters())
}

func promises(abi int, filters bool) []Promise {
	sockets := Promise{promiseSockets, filters, "this kernel takes no seccomp filters"}
	tcp := sockets // without a socket there is no TCP
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

// filters reports whether the kernel takes seccomp filters with what ours says.
func filters() bool {
	takes := func(action uint32) bool {
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
		return errno == 0
	}
	return takes(unix.SECCOMP_RET_ERRNO) && takes(unix.SECCOMP_RET_KILL_PROCESS) && takes(unix.SECCOMP_RET_USER_NOTIF)
}
