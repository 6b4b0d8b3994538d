package facts

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// gatherHost reads each part with gopsutil, because host.Info of gopsutil may start lsb_release.
func gatherHost(ctx context.Context) (map[string]any, error) {
	info := map[string]any{"os": runtime.GOOS}
	var errs []error
	text := func(key string, get func(context.Context) (string, error)) {
		value, err := get(ctx)
		info[key] = value
		errs = append(errs, err)
	}
	number := func(key string, get func(context.Context) (uint64, error)) {
		value, err := get(ctx)
		info[key] = float64(value)
		errs = append(errs, err)
	}
	text("kernelVersion", host.KernelVersionWithContext)
	text("kernelArch", func(context.Context) (string, error) { return host.KernelArch() })
	text("hostId", host.HostIDWithContext)
	number("bootTime", host.BootTimeWithContext)
	number("uptime", host.UptimeWithContext)
	number("procs", countProcesses)
	system, role, err := host.VirtualizationWithContext(ctx)
	info["virtualizationSystem"], info["virtualizationRole"] = system, role
	errs = append(errs, err)
	release, err := readRelease("/etc/os-release", "/usr/lib/os-release")
	info["platform"], info["platformFamily"], info["platformVersion"] = release.platform, release.family, release.version
	errs = append(errs, err)
	info["platformCodename"] = release.codename
	arch, _ := info["kernelArch"].(string)
	info["packageArch"] = packageArch("/", arch)
	running, _ := info["kernelVersion"].(string)
	boot, _ := info["bootTime"].(float64)
	info["rebootRequired"], err = needsReboot("/", running, time.Unix(int64(boot), 0))
	errs = append(errs, err)

	return map[string]any{"host": map[string]any{"info": info}}, errors.Join(errs...)
}

// gatherCPU lists each processor package once, not each core.
func gatherCPU(ctx context.Context) (map[string]any, error) {
	all, err := cpu.InfoWithContext(ctx)
	if err != nil {
		return nil, err
	}
	info, err := plain(packages(all))
	if err != nil {
		return nil, err
	}

	return map[string]any{"cpu": map[string]any{"count": float64(len(all)), "info": info}}, nil
}

// packages returns the first core of each package, with the number of cores.
func packages(all []cpu.InfoStat) []cpu.InfoStat {
	at := map[string]int{}
	out := []cpu.InfoStat{}
	for _, core := range all {
		i, known := at[core.PhysicalID]
		if known {
			out[i].Cores += core.Cores
			continue
		}
		at[core.PhysicalID] = len(out)
		out = append(out, core)
	}

	return out
}

func gatherMemory(ctx context.Context) (map[string]any, error) {
	memory := map[string]any{}
	virtual, err := mem.VirtualMemoryWithContext(ctx)
	if err == nil {
		memory["virtual"], err = plain(virtual)
	}
	swap, swapErr := mem.SwapMemoryWithContext(ctx)
	if swapErr == nil {
		memory["swap"], swapErr = plain(swap)
	}

	return map[string]any{"memory": memory}, errors.Join(err, swapErr)
}

// gatherPartitions reads only local file systems, because a network file system may block the caller.
func gatherPartitions(ctx context.Context) (map[string]any, error) {
	type partition struct {
		disk.PartitionStat
		Usage *disk.UsageStat `json:"usage,omitempty"`
	}
	all, err := disk.PartitionsWithContext(ctx, false)
	errs := []error{err}
	partitions := make([]partition, len(all))
	for i, p := range all {
		usage, err := disk.UsageWithContext(ctx, p.Mountpoint)
		partitions[i] = partition{PartitionStat: p, Usage: usage}
		errs = append(errs, err)
	}
	list, err := plain(partitions)

	return map[string]any{"partition": map[string]any{"partitions": list}}, errors.Join(append(errs, err)...)
}

func countProcesses(context.Context) (uint64, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	count := uint64(0)
	for _, name := range names {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			count++
		}
	}

	return count, err
}

// release is the platform according to os-release(5).
type release struct {
	platform, family, version, codename string
}

func readRelease(paths ...string) (release, error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			return parseRelease(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return release{}, err
		}
	}

	return release{}, errors.New("no os-release file found: the platform is unknown")
}

// parseRelease reads an os-release file. Some platforms have another name in facts, as in CCM and gopsutil.
func parseRelease(text string) release {
	values := assignments(text)
	id := strings.ToLower(values["ID"])
	r := release{platform: id, family: familyOf(id, values["ID_LIKE"]), version: values["VERSION_ID"], codename: values["VERSION_CODENAME"]}
	if r.version == "" {
		r.version = values["BUILD_ID"]
	}
	switch id {
	case "rhel":
		r.platform = "redhat"
	case "ol":
		r.platform = "oracle"
	case "amzn":
		r.platform = "amazon"
	}

	return r
}

// familyOf returns the family of an ID, or else of the first known ID in ID_LIKE. Other platforms are their
// own family.
func familyOf(id, likes string) string {
	for _, name := range append([]string{id}, strings.Fields(strings.ToLower(likes))...) {
		switch {
		case name == "debian" || name == "ubuntu" || name == "raspbian":
			return "debian"
		case name == "rhel" || name == "centos" || name == "rocky" || name == "almalinux" || name == "ol" || name == "amzn":
			return "rhel"
		case name == "fedora":
			return "fedora"
		case name == "suse" || name == "sles" || name == "sled" || strings.HasPrefix(name, "opensuse"):
			return "suse"
		case name == "arch" || name == "alpine" || name == "gentoo":
			return name
		}
	}

	return id
}

// assignments reads lines of NAME=value with shell quotes.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			values[name] = unquote(value)
		}
	}

	return values
}

func unquote(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return value
	}
	inner := value[1 : len(value)-1]
	switch value[0] {
	case '\'':
		return inner
	case '"':
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(inner)
	default:
		return value
	}
}

// gatherNames reads the names from local files, because a name server may not answer.
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

// fullName returns the name with its domain: the host name if it has a domain, else from the line of hosts(5)
// with the host name, else with the domain of the kernel.
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

// maxStatusLine limits a line of the dpkg database. Some packages provide thousands of names.
const maxStatusLine = 1 << 20

// packageArch returns the architecture of native packages, amd64 for dpkg and x86_64 for rpm.
// It is the architecture of the package dpkg, because a 64-bit kernel may run a 32-bit system,
// or else of the kernel.
func packageArch(root, kernelArch string) string {
	f, err := os.Open(filepath.Join(root, "var/lib/dpkg/status"))
	if err != nil {
		return kernelArch
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxStatusLine)
	for isDpkg := false; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "Package":
			isDpkg = value == "dpkg"
		case name == "Architecture" && isDpkg:
			return value
		}
	}

	return kernelArch
}

// needsReboot reports whether a package requested a reboot, as on Debian, or another kernel than the running
// one was installed since boot.
func needsReboot(root, running string, boot time.Time) (bool, error) {
	if _, err := os.Stat(filepath.Join(root, "run/reboot-required")); err == nil {
		return true, nil
	}
	kernels, err := filepath.Glob(filepath.Join(root, "lib/modules/*/vmlinuz"))
	for _, path := range kernels {
		info, err := os.Lstat(path)
		if err != nil || filepath.Base(filepath.Dir(path)) == running {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && time.Unix(stat.Ctim.Unix()).After(boot) {
			return true, nil
		}
	}

	return false, err
}
