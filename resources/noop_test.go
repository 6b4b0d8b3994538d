package resources_test

import "testing"

// TestNoopWhereAnEarlierResourceDecides: what the machine shows now is not what
// the run will see.
func TestNoopWhereAnEarlierResourceDecides(t *testing.T) {
	for name, c := range map[string]struct {
		there, list string
		noop, run   []string
	}{
		"what a command creates is brought": {
			list: "{file: [$DIR/flag: {content: x}]}, {exec: [c: {command: /bin/false, creates: $DIR/flag}]}",
			noop: []string{"file#flag noop", "exec#c skipped"}, run: []string{"file#flag changed", "exec#c stable"},
		},
		"what a command creates is removed": {
			there: "-- flag --\n",
			list:  "{file: [$DIR/flag: {ensure: absent}]}, {exec: [c: {command: 'touch $DIR/flag', creates: $DIR/flag}]}",
			noop:  []string{"file#flag noop", "exec#c skipped"}, run: []string{"file#flag changed", "exec#c changed"},
		},
		"what a command removes is brought": {
			list: "{file: [$DIR/flag: {content: x}]}, {exec: [c: {command: 'rm $DIR/flag', removes: $DIR/flag}]}",
			noop: []string{"file#flag noop", "exec#c skipped"}, run: []string{"file#flag changed", "exec#c changed"},
		},
		"what a command removes is removed": {
			there: "-- flag --\n",
			list:  "{file: [$DIR/flag: {ensure: absent}]}, {exec: [c: {command: /bin/false, removes: $DIR/flag}]}",
			noop:  []string{"file#flag noop", "exec#c skipped"}, run: []string{"file#flag changed", "exec#c stable"},
		},
		"two commands remove the same": {
			there: "-- flag --\n",
			list:  "{exec: [b: {command: 'rm $DIR/flag', removes: $DIR/flag}, c: {command: /bin/false, removes: $DIR/flag}]}",
			noop:  []string{"exec#b noop", "exec#c skipped"}, run: []string{"exec#b changed", "exec#c stable"},
		},
		"two commands create the same": {
			list: "{exec: [b: {command: 'touch $DIR/flag', creates: $DIR/flag}, c: {command: /bin/false, creates: $DIR/flag}]}",
			noop: []string{"exec#b noop", "exec#c skipped"}, run: []string{"exec#b changed", "exec#c stable"},
		},
		"the source of a file is changed": {
			there: "-- s --\nold\n-- d --\nold\n",
			list:  "{file: [$DIR/s: {content: new}, $DIR/d: {source: $DIR/s}]}",
			noop:  []string{"file#s noop", "file#d skipped"}, run: []string{"file#s changed", "file#d changed"},
		},
		"a file that is written once is brought": {
			list: "{exec: [b: {command: 'touch $DIR/d', creates: $DIR/d}]}, {file: [$DIR/d: {content: x, replace: false, require: ['exec#b']}]}",
			noop: []string{"exec#b noop", "file#d skipped"}, run: []string{"exec#b changed", "file#d stable"},
		},
		"a source that comes": {
			list: "{file: [$DIR/s: {content: new}, $DIR/d: {source: $DIR/s}]}",
			noop: []string{"file#s noop", "file#d skipped"}, run: []string{"file#s changed", "file#d changed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.there+"-- root.yaml --\nmuster: {resources: ["+c.list+"]}\n")
			w.opts.Env.Scope.Noop = true
			w.wants(w.run(), c.noop...)
			w.opts.Env.Scope.Noop = false
			w.wants(w.run(), c.run...)
		})
	}
}
