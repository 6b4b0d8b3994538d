package facts

import (
	"context"
	"os"
	"strings"
)

// gatherNames reads the names from local files: a name server that does not
// answer must not delay a run.
func gatherNames(context.Context) (map[string]any, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	// Both files may be missing; then only the short name is known.
	hosts, _ := os.ReadFile("/etc/hosts")
	domain, _ := os.ReadFile("/proc/sys/kernel/domainname")

	return map[string]any{
		"hostname": hostname,
		"fqdn":     fullName(hostname, string(hosts), string(domain)),
		"host":     map[string]any{"info": map[string]any{"hostname": hostname}},
	}, nil
}

// fullName returns the name with its domain: the host name if it has one, else
// the line of hosts(5) with the host name, else the kernel's domain.
func fullName(hostname, hosts, domain string) string {
	if strings.Contains(hostname, ".") {
		return hostname
	}
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		if name := fullNameIn(strings.Fields(line), hostname); name != "" {
			return name
		}
	}
	domain = strings.TrimSpace(domain)
	if domain == "" || domain == "(none)" {
		return hostname
	}

	return hostname + "." + domain
}

func fullNameIn(fields []string, hostname string) string {
	if len(fields) < 2 {
		return ""
	}
	full, named := "", false
	for _, name := range fields[1:] {
		if full == "" && strings.HasPrefix(name, hostname+".") {
			full = name
		}
		named = named || name == hostname
	}
	if !named {
		return ""
	}

	return full
}
