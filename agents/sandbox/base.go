package sandbox

// reach is a set of paths, by what may be done with them.
type reach struct {
	folders, files []string // may be read and executed
	devices        []string // may be read and written
}

func (r reach) all() []string {
	return append(append(append([]string{}, r.folders...), r.files...), r.devices...)
}

// base is what every command may reach, where it exists: what programs need, and nothing that is anybody's. Of /etc there
// are single files, since the daemon's configuration may be there; of /proc there are the machine's figures, and no
// process. /dev/tty is left out: nobody is to type for the person. Symbolic links of these are the system's, and followed.
var base = reach{
	folders: []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/ld.so.conf.d", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs",
		"/etc/ssl/certs", "/etc/terminfo",
		"/sys/devices/system/cpu",
	},
	files: []string{
		"/etc/bash.bashrc", "/etc/ca-certificates.conf", "/etc/debian_version", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
		"/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/locale.alias", "/etc/locale.conf",
		"/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
		"/etc/profile", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/shells", "/etc/ssl/openssl.cnf",
		"/etc/timezone",
		"/dev/random", "/dev/urandom",
		"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version",
	},
	devices: []string{"/dev/full", "/dev/null", "/dev/zero"},
}

// Path is where commands look for programs, whatever the daemon's own says.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
