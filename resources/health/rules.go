package health

import "strings"

// attributes are those of each kind of goss rule. A test of package goss holds
// them against goss itself, which only the program that evaluates rules links.
func attributes() map[string][]string {
	out := map[string][]string{}
	for kind, words := range map[string]string{
		"addr":         "address local-address reachable timeout",
		"command":      "exec exit-status stderr stdout timeout",
		"dns":          "addrs resolvable resolve resolveable server timeout",
		"file":         "contains contents exists filetype gid group linked-to md5 mode owner path sha256 sha512 size uid",
		"group":        "exists gid groupname",
		"http":         "allow-insecure body ca-file cert-file headers key-file method no-follow-redirects password proxy request-body request-headers status timeout url username",
		"interface":    "addrs exists mtu name",
		"kernel-param": "name value",
		"matching":     "as-reader content matches",
		"mount":        "exists filesystem mountpoint opts source timeout usage vfs-opts",
		"package":      "installed name versions",
		"port":         "ip listening port",
		"process":      "comm running",
		"service":      "enabled name runlevels running",
		"user":         "exists gid groups home shell uid username",
	} {
		out[kind] = append(strings.Fields(words), "meta", "skip", "title")
	}

	return out
}
