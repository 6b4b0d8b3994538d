package facts

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// gatherHost asks gopsutil for each part: its host.Info would start lsb_release
// on some systems.
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

// gatherCPU lists each processor package once: 256 equal cores carry no more
// information.
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

// packages returns the first core of each package, with the number of its
// cores.
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

// gatherPartitions reads local file systems only: a network one may not answer,
// and would block the caller.
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

// countProcesses counts the numbers in /proc.
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
