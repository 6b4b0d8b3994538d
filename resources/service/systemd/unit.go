package systemd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/resource"
)

// showCommand reads units with systemctl show.
type showCommand struct{}

// String returns the name for logs.
func (showCommand) String() string { return "systemctl show" }

func (showCommand) units(ctx context.Context, env resource.Env, names []string) ([]unit, error) {
	var p parser
	onLine := func(line string, stderr bool) {
		if !stderr {
			p.line(line)
		}
	}
	result, err := run(ctx, env, onLine, append([]string{systemctl, "show", "--system", "--property=" + properties, "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 || len(p.units) != len(names) {
		said := strings.ToValidUTF8(result.Stderr.LastLines(logLines), "\uFFFD")
		return nil, fmt.Errorf("%s show answered for %d of %d services (exit code %d): %s", systemctl, len(p.units), len(names), result.ExitCode, said)
	}

	return p.units, nil
}

// properties are the properties that muster reads.
const properties = "Id,LoadState,ActiveState,ActiveEnterTimestampMonotonic,UnitFileState,NeedDaemonReload,CanReload,Job"

// unit is a unit in the memory of systemd.
type unit struct {
	id, load, active, unitFile string
	needReload, canReload      bool
	// job reports that systemd has a job for it: to start, stop, restart or reload it.
	job bool
	// activeSince is the time since boot when the unit last became active.
	activeSince time.Duration
}

// parser reads the output of systemctl show: key=value lines, with an empty
// line between units.
type parser struct {
	units []unit
	open  bool
}

func (p *parser) line(line string) {
	if line == "" {
		p.open = false
		return
	}
	if !p.open {
		p.units = append(p.units, unit{})
		p.open = true
	}
	u := &p.units[len(p.units)-1]
	switch key, value, _ := strings.Cut(line, "="); key {
	case "Id":
		u.id = value
	case "LoadState":
		u.load = value
	case "ActiveState":
		u.active = value
	case "ActiveEnterTimestampMonotonic":
		if at, err := strconv.ParseInt(value, 10, 64); err == nil {
			u.activeSince = time.Duration(at) * time.Microsecond
		}
	case "UnitFileState":
		u.unitFile = value
	case "NeedDaemonReload":
		u.needReload = value == "yes"
	case "Job":
		u.job = value != "" && value != "0"
	case "CanReload":
		u.canReload = value == "yes"
	}
}

// isEnabled returns the answer of systemctl is-enabled for a unit, and whether it is certain: systemd
// remembers how a unit was enabled when it read the unit, but is-enabled reads the links. An init script
// has a separate answer.
func (u unit) isEnabled(links links, script bool) (answer string, sure bool) {
	_, masked := links.masked[u.id]
	_, linked := links.enabling[u.id]
	switch answer = u.unitFile; {
	case u.load == notFound || answer == "":
		return notFound, !script
	case answer == "bad": // the file is gone, and systemd did not notice it yet
		return answer, false
	case answer == "generated":
		return answer, !script
	case strings.HasPrefix(answer, "masked"):
		return answer, masked
	case answer == "transient":
		return answer, true
	default:
		return answer, !masked && linked == strings.HasPrefix(answer, "enabled")
	}
}
