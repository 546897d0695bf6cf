package wire

import "golang.org/x/sys/unix"

// peerUID is the account at the other end of a connected unix socket, as it was when it connected (unix(4),
// LOCAL_PEERCRED).
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
