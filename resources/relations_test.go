package resources_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
)

// steps returns the order of a manifest's resources, each with its predecessors.
func steps(t *testing.T, list string) []string {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte("muster:\n  resources:\n"+list))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{Dir: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	graph, err := plan.Build(resolved.Resources, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range graph.Steps() {
		line := s.Resource.Ref().String()
		for _, e := range s.Waits {
			if line += " < " + e.From.String() + " " + e.Reason; e.Automatic != strings.Contains(e.Reason, ":") {
				t.Errorf("%+v", e)
			}
		}
		out = append(out, line)
	}

	return out
}

// TestRelationsBetweenTypes has each automatic relation. The waiting resource is declared first, so the order
// proves the relation.
func TestRelationsBetweenTypes(t *testing.T) {
	const (
		directory = "ensure: directory, owner: root, group: root, mode: '0755'"
		content   = "content: x, owner: root, group: root, mode: '0644'"
		fetched   = "url: 'https://example.com/a.tar.gz', owner: root, group: root"
		absent    = "ensure: absent"
	)
	for name, c := range map[string]struct{ list, want []string }{
		"a file and the directories above it": {
			list: []string{"file /opt/app/etc/x " + content, "file /opt/app/etc " + directory, "file /opt " + directory},
			want: []string{"file#/opt", "file#/opt/app/etc < file#/opt path:/opt", "file#/opt/app/etc/x < file#/opt/app/etc path:/opt/app/etc < file#/opt path:/opt"},
		},
		"a link, its target and its directory": {
			list: []string{"link /opt/app/current target: ../v2", "file /opt/v2 " + directory, "file /opt/app " + directory},
			want: []string{"file#/opt/v2", "file#/opt/app", "link#/opt/app/current < file#/opt/app path:/opt/app < file#/opt/v2 path:/opt/v2"},
		},
		"a file below a link": {
			list: []string{"file /opt/current/x " + content, "link /opt/current target: v2"},
			want: []string{"link#/opt/current", "file#/opt/current/x < link#/opt/current path:/opt/current"},
		},
		"the removal of a directory with a link": {
			list: []string{"file /opt/app " + absent, "link /opt/app/current " + absent},
			want: []string{"link#/opt/app/current", "file#/opt/app < link#/opt/app/current emptied:/opt/app"},
		},
		"a file and its source": {
			list: []string{"file /etc/x source: /srv/x, owner: root, group: root, mode: '0644'", "file /srv/x " + content},
			want: []string{"file#/srv/x", "file#/etc/x < file#/srv/x path:/srv/x"},
		},
		"a file and what an exec makes for it": {
			list: []string{"file /opt/app/x " + content, "exec make creates: /opt/app"},
			want: []string{"exec#make", "file#/opt/app/x < exec#make path:/opt/app"},
		},
		"a file and the archive whose target it is in": {
			list: []string{"file /opt/app/x " + content, "archive /tmp/a.tar.gz extract_parent: /opt/app, " + fetched},
			want: []string{"archive#/tmp/a.tar.gz", "file#/opt/app/x < archive#/tmp/a.tar.gz path:/opt/app"},
		},
		"a file and the accounts of its owner and group": {
			list: []string{"file /opt/x content: x, owner: app, group: web, mode: '0644'", "file /etc/group " + content, "file /etc/passwd " + content},
			want: []string{"file#/etc/group", "file#/etc/passwd", "file#/opt/x < file#/etc/passwd path:/etc/passwd < file#/etc/group path:/etc/group"},
		},
		"root and numbers wait for no account": {
			list: []string{"file /opt/x content: x, owner: root, group: '12', mode: '0644'", "file /etc/group " + content, "file /etc/passwd " + content},
			want: []string{"file#/opt/x", "file#/etc/group", "file#/etc/passwd"},
		},
		"the removal of a directory and of all that is in it": {
			list: []string{"file /opt/app/y " + absent, "file /opt/app " + absent, "file /opt/app/x " + absent, "archive /opt/app/a.tar.gz " + absent},
			want: []string{
				"file#/opt/app/y", "file#/opt/app/x", "archive#/opt/app/a.tar.gz",
				"file#/opt/app < file#/opt/app/y emptied:/opt/app < file#/opt/app/x emptied:/opt/app < archive#/opt/app/a.tar.gz emptied:/opt/app",
			},
		},
		"a service and the file of its unit": {
			list: []string{"service app ensure: running", "file /etc/systemd/system/app.service " + content},
			want: []string{"file#/etc/systemd/system/app.service", "service#app < file#/etc/systemd/system/app.service path:/etc/systemd/system/app.service"},
		},
		"a service and its package": {
			list: []string{"service app.service ensure: running", "package app:amd64 ensure: present"},
			want: []string{"package#app:amd64", "service#app.service < package#app:amd64 package:app"},
		},
		"an archive, where it is put and where it is unpacked": {
			list: []string{"archive /var/cache/a.tar.gz extract_parent: /opt/app, " + fetched, "file /var/cache " + directory, "file /opt " + directory},
			want: []string{"file#/var/cache", "file#/opt", "archive#/var/cache/a.tar.gz < file#/var/cache path:/var/cache < file#/opt path:/opt"},
		},
		"an archive and its target": {
			list: []string{"file /opt/app " + directory, "archive /tmp/a.tar.gz extract_parent: /opt/app, " + fetched},
			want: []string{"file#/opt/app", "archive#/tmp/a.tar.gz < file#/opt/app path:/opt/app"},
		},
		"an archive and its accounts": {
			list: []string{"archive /tmp/a.tar.gz extract_parent: /opt/app, url: 'https://example.com/a.tar.gz', owner: app, group: '0'", "file /etc/passwd " + content},
			want: []string{"file#/etc/passwd", "archive#/tmp/a.tar.gz < file#/etc/passwd path:/etc/passwd"},
		},
		"an exec and its cwd": {
			list: []string{"exec make cwd: /opt/app", "file /opt/app " + directory},
			want: []string{"file#/opt/app", "exec#make < file#/opt/app path:/opt/app"},
		},
		"an exec, what it removes, and the directory of that": {
			list: []string{"file /opt/app " + absent, "exec unpack removes: /opt/app/new.zip", "exec fetch creates: /opt/app/new.zip"},
			want: []string{"exec#fetch", "exec#unpack < exec#fetch path:/opt/app/new.zip", "file#/opt/app < exec#unpack emptied:/opt/app"},
		},
		"an exec and its user": {
			list: []string{"exec make user: app", "exec root user: root, group: '12'", "file /etc/passwd " + content},
			want: []string{"exec#root", "file#/etc/passwd", "exec#make < file#/etc/passwd path:/etc/passwd"},
		},
		"an exec and the archive that its cwd is in": {
			list: []string{"exec make cwd: /opt/app/src", "archive /tmp/a.tar.gz extract_parent: /opt/app, " + fetched},
			want: []string{"archive#/tmp/a.tar.gz", "exec#make < archive#/tmp/a.tar.gz path:/opt/app"},
		},
		"an exec, its program and that of its guard": {
			list: []string{"exec /opt/bin/make unless: /srv/check", "file /opt/bin/make " + content, "file /srv/check " + content},
			want: []string{"file#/opt/bin/make", "file#/srv/check", "exec#/opt/bin/make < file#/opt/bin/make path:/opt/bin/make < file#/srv/check path:/srv/check"},
		},
		"what is excluded makes nobody wait": {
			list: []string{"exec make cwd: /opt/app", "file /opt/app control: {if: 'false'}, " + directory},
			want: []string{"exec#make", "file#/opt/app"},
		},
		"what takes an output waits for it, and for its directory": {
			list: []string{"file /opt/x content: \"${ outputs('exec#date').stdout }\", owner: root, group: root, mode: '0644'", "file /opt " + directory, "exec date provider: posix"},
			want: []string{"file#/opt", "exec#date", "file#/opt/x < exec#date outputs < file#/opt path:/opt"},
		},
		"the order of the document, where the two wait for each other": {
			list: []string{"file /opt/x source: /srv/y/x, owner: root, group: root, mode: '0644'", "exec make creates: /srv/y, cwd: /opt/x"},
			want: []string{"file#/opt/x", "exec#make < file#/opt/x path:/opt/x"},
		},
		"the order of the document, where one before brings it too": {
			list: []string{"archive /tmp/a.tar.gz extract_parent: /opt/app, " + fetched, "exec make cwd: /opt/app", "file /opt/app " + directory},
			want: []string{"archive#/tmp/a.tar.gz", "exec#make < archive#/tmp/a.tar.gz path:/opt/app", "file#/opt/app"},
		},
		"what is written wins": {
			list: []string{"exec make cwd: /opt/app", "file /opt/app require: ['exec#make'], " + directory},
			want: []string{"exec#make", "file#/opt/app < exec#make require"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list strings.Builder
			for _, line := range c.list {
				words := strings.SplitN(line, " ", 3)
				fmt.Fprintf(&list, "    - %s: [{%q: {%s}}]\n", words[0], words[1], words[2])
			}
			if got := steps(t, list.String()); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
