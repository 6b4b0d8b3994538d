package apt

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
)

// past caches the simulations of a run. The lock of the type guards it.
type past struct {
	run string
	// repositories and packages identify the state that the simulations are valid for.
	repositories, packages string
	// removals are the additional removals of accepted requests.
	removals map[string][]pkg.Package
	// refusals are the errors of requests that no repository can meet.
	refusals map[string]error
}

// follow drops the simulations of other runs and outdated ones.
func (p *past) follow(run string) {
	repositories, packages := stamps(sourcesFile, sourcesDir, listsDir, "/etc/apt/preferences", "/etc/apt/preferences.d", "/etc/apt/apt.conf.d"), stamps(dpkgStatus)
	if run == "" || run != p.run || repositories != p.repositories {
		p.refusals = nil
	}
	if p.refusals == nil || packages != p.packages {
		p.removals = nil
	}
	p.run, p.repositories, p.packages = run, repositories, packages
}

// refused returns the error of the first request that no repository can meet.
func (p *past) refused(requests []pkg.Request) error {
	for _, r := range requests {
		if err := p.refusals[key(r)]; err != nil {
			return err
		}
	}

	return nil
}

// accepted returns the additional removals of requests. done is false if the requests were not
// simulated together.
func (p *past) accepted(requests []pkg.Request) (removed []pkg.Package, done bool) {
	removed, done = p.removals[key(requests...)]

	return removed, done
}

// note records a simulation.
func (p *past) note(requests []pkg.Request, removed []pkg.Package, err error) {
	if p.run == "" {
		return
	}
	if p.refusals == nil {
		p.refusals = map[string]error{}
	}
	if p.removals == nil {
		p.removals = map[string][]pkg.Package{}
	}
	switch {
	case err == nil:
		p.removals[key(requests...)] = removed
	case errors.Is(err, pkg.ErrNoPackage) || errors.Is(err, pkg.ErrNoVersion):
		for _, r := range requests {
			if about := pkg.About(err, []pkg.Request{r}); about != err {
				p.refusals[key(r)] = about
			}
		}
	}
}

// key identifies requests by their commands.
func key(requests ...pkg.Request) string {
	var b strings.Builder
	for _, argv := range commands(requests) {
		if argv[0] != "apt-get" {
			continue
		}
		b.WriteString(strings.Join(argv, " ") + "\n")
	}

	return b.String()
}

// stamps identifies the content of files and directories by time and size.
func stamps(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			b.WriteString(path + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10) + " " + strconv.FormatInt(info.Size(), 10) + "\n")
		}
	}

	return b.String()
}
