package wire

import "golang.org/x/sys/unix"

// peerUID is the account and process at the other end of a unix socket when it connected (unix(7), SO_PEERCRED).
func peerUID(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}
