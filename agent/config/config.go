// Package config reads and validates the configuration of an agent, and applies changes to a running
// agent.
package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
)

// Config is the configuration of an agent. Defaults come from Default,
// Parse reads it. The doc tags are the comments of Example; a field
// tagged restart cannot be changed by a reload.
type Config struct {
	Node           string            `json:"node" restart:"true" doc:"Id of this node, one token of letters, digits, - and _. The default is the host name with each . written _."`
	Groups         []string          `json:"groups" doc:"Groups this node is in, those that win first; every node is in the group all."`
	GroupsOrder    []string          `json:"groups_order" doc:"Groups that win over all others, the first one first. Groups of muster fleet group win over the groups above by default; muster fleet group --order replaces this list."`
	Labels         map[string]string `json:"labels" doc:"Labels (key/value metadata), for example rack: b4."`
	Interval       model.Duration    `json:"interval" doc:"Interval of reconciling each manifest, varied by a tenth. Assignments and resources can set a shorter one."`
	HealthInterval model.Duration    `json:"health_interval" doc:"How often health checks are made between runs, give or take a tenth; 0s makes them in runs only. A critical one makes a repairing run begin."`
	StateDir       string            `json:"state_dir" restart:"true" doc:"Directory of assignments, buffered reports, requests and the run lock."`
	FactsDir       string            `json:"facts_dir" doc:"Directory with facts.json, facts.yaml and facts.d for facts of your own."`
	Inventory      string            `json:"inventory" doc:"on stores the list of installed packages, for package() in target expressions and muster fleet query --from packages; off does not."`
	NATS           NATS              `json:"nats" restart:"true" doc:"How NATS is reached. With nothing set: the selected context of the nats tools, else nats://127.0.0.1:4222."`
	Prefix         string            `json:"prefix" restart:"true" doc:"First token of all subjects and, in capitals, of all buckets of the fleet."`
	Log            Log               `json:"log" doc:"The log, which goes to standard error."`
	Metrics        Metrics           `json:"metrics" restart:"true" doc:"Metrics for Prometheus."`
	Trust          Trust             `json:"trust" doc:"Required signatures; see muster trust."`

	ShutdownTimeout model.Duration `json:"shutdown_timeout" doc:"How long the change in hand may take to finish when the agent shuts down."`
	OutboxMaxBytes  model.Size     `json:"outbox_max_bytes" doc:"How much disk reports may take while they cannot be delivered. When it is full, summaries of stable runs go first."`
	Heartbeat       model.Duration `json:"heartbeat" doc:"How often the state of the node is stored when nothing changes, give or take a tenth."`
	StateTTL        model.Duration `json:"state_ttl" doc:"How long the state of a node is valid without a heartbeat; at least twice the heartbeat."`
	ReadAllEvery    int            `json:"read_all_every" doc:"Every how many runs of a manifest the content of all files is read again, whatever their times are; 0 is never."`
	MaxDepth        int            `json:"max_depth" doc:"How deep manifests may apply further manifests."`
	ReadFileLimit   model.Size     `json:"read_file_limit" restart:"true" doc:"How large a manifest may be, or a file that an expression reads."`
}

// NATS configures the connection to NATS.
type NATS struct {
	Context      string   `json:"context" doc:"Name of a context of the nats tools."`
	Servers      []string `json:"servers" doc:"URLs of servers; they override the context."`
	Creds        string   `json:"creds" doc:"Path of a credentials file."`
	NKey         string   `json:"nkey" doc:"Path of an nkey seed."`
	User         string   `json:"user" doc:"User that connects with the password of password_file."`
	PasswordFile string   `json:"password_file" doc:"Path of a file with the password of user."`
	TLSCA        string   `json:"tlsca" doc:"Path of the certificate authorities to trust, in PEM."`
	TLSCert      string   `json:"tlscert" doc:"Path of the client certificate, in PEM."`
	TLSKey       string   `json:"tlskey" doc:"Path of the key of the client certificate, in PEM."`
	APIPrefix    string   `json:"api_prefix" doc:"Prefix of the JetStream API, where it is neither $JS.API nor fleet.API, which are found by themselves."`
}

// Trust configures the required signatures.
type Trust struct {
	Keys      []TrustedKey `json:"keys" doc:"Public keys of operators, each with key, name, and the families it may sign for (group.web, node.*, group.*; none are all). With any, assignments, their removal and requests are accepted only when they are signed; without any, signatures are not looked at."`
	Threshold int          `json:"threshold" doc:"How many of the keys must have signed."`
}

// TrustedKey is the public key of an operator whose signatures are accepted.
type TrustedKey struct {
	Key      string   `json:"key" yaml:"key"`
	Name     string   `json:"name" yaml:"name,omitempty"`
	Families []string `json:"families" yaml:"families,omitempty,flow"`
}

// Policy returns the signature policy of the node.
func (c *Config) Policy() signed.Policy {
	p := signed.Policy{Fleet: c.Prefix, Threshold: c.Trust.Threshold}
	for _, k := range c.Trust.Keys {
		p.Keys = append(p.Keys, signed.Trusted{Key: signed.Key(k.Key), Name: k.Name, Families: k.Families})
	}

	return p
}

// Unsignable returns the families of the node that no key may sign for. It returns nil if signatures
// are not required.
func (c *Config) Unsignable() []string {
	policy := c.Policy()
	if !policy.On() {
		return nil
	}

	return slices.DeleteFunc(model.Families(c.Node, c.Groups), func(family string) bool { return policy.Signers(family) > 0 })
}

// Log configures the log.
type Log struct {
	Format string `json:"format" doc:"text or json."`
	Level  string `json:"level" doc:"Minimum log level: debug, info, warn or error."`
}

// Default returns the defaults of a machine with this host name.
func Default(hostname string) Config {
	return Config{
		Node:            strings.ReplaceAll(hostname, ".", "_"),
		Groups:          []string{},
		GroupsOrder:     []string{},
		Labels:          map[string]string{},
		Interval:        model.Duration(5 * time.Minute),
		HealthInterval:  model.Duration(time.Minute),
		StateDir:        "/var/lib/muster",
		FactsDir:        "/etc/muster",
		Inventory:       "on",
		NATS:            NATS{Servers: []string{}},
		Prefix:          "muster",
		Log:             Log{Format: "text", Level: "info"},
		Trust:           Trust{Keys: []TrustedKey{}, Threshold: 1},
		ShutdownTimeout: model.Duration(time.Minute),
		OutboxMaxBytes:  reporting.DefaultMaxBytes,
		Heartbeat:       model.Duration(time.Minute),
		StateTTL:        model.Duration(5 * time.Minute),
		ReadAllEvery:    20,
		MaxDepth:        10,
		ReadFileLimit:   manifest.DefaultMaxBytes,
	}
}

// Parse reads a configuration in YAML over defaults, which it changes. Decoding is strict. Parse
// returns all problems at once, as model.Problems, with their positions in the file.
func Parse(name string, data []byte, defaults Config) (Config, error) {
	c := defaults
	places, problems := document.DecodeInto(name, data, manifest.DefaultMaxBytes, &c)
	invalid := c.checkKeys()
	if len(problems) == 0 { // otherwise a misspelled key may be the missing key of a pair
		invalid = append(invalid, c.checkPairs()...)
	}
	for _, p := range invalid {
		if at, ok := places[p.Property]; ok {
			p.Pos = at
		} else {
			p.Pos.File = name
		}
		problems = append(problems, p)
	}

	return c, problems.Sorted().Err()
}

type field struct {
	key, doc string
	restart  bool
	section  bool
	value    reflect.Value
}

// fields returns all keys in order; the keys of a section follow the section.
func (c *Config) fields() []field { return fieldsOf(reflect.ValueOf(c).Elem(), "", false) }

func fieldsOf(v reflect.Value, prefix string, restart bool) []field {
	var out []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		field := field{key: prefix + f.Tag.Get("json"), doc: f.Tag.Get("doc"), value: v.Field(i), restart: restart || f.Tag.Get("restart") == "true"}
		field.section = f.Type.Kind() == reflect.Struct
		out = append(out, field)
		if field.section {
			out = append(out, fieldsOf(v.Field(i), field.key+".", field.restart)...)
		}
	}

	return out
}

// Apply copies the changed values that need no restart from next. It returns the result, the keys that
// it changed, and the changed keys that need a restart and keep their values.
func (c Config) Apply(next Config) (out Config, applied, needRestart []string) {
	now, then := c.fields(), next.fields()
	for i, f := range now {
		switch {
		case f.section || reflect.DeepEqual(f.value.Interface(), then[i].value.Interface()):
		case f.restart:
			needRestart = append(needRestart, f.key)
		default:
			f.value.Set(then[i].value)
			applied = append(applied, f.key)
		}
	}

	return c, applied, needRestart
}

// Example returns the configuration as a YAML document with a comment for
// each key; parsed, it is the same configuration again.
func Example(c Config) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# The configuration of a muster agent. Every key may be left out.\n")
	for _, f := range c.fields() {
		indent := strings.Repeat("  ", strings.Count(f.key, "."))
		key := f.key[strings.LastIndexByte(f.key, '.')+1:]
		b.WriteString("\n")
		comment(&b, indent, f.doc, f.restart)
		b.WriteString(indent + key + ":")
		if f.section {
			b.WriteString("\n")
			continue
		}
		value, err := yaml.Marshal(f.value.Interface())
		if err != nil {
			return nil, err
		}
		text := strings.TrimRight(string(value), "\n")
		if isBlock(f.value) {
			text = "\n" + indent + "  " + strings.ReplaceAll(text, "\n", "\n"+indent+"  ")
		} else {
			text = " " + text
		}
		b.WriteString(text + "\n")
	}

	return []byte(b.String()), nil
}

func isBlock(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() > 0
}

// comment writes a text as comment lines of at most 80 characters or so.
func comment(b *strings.Builder, indent, text string, restart bool) {
	if restart {
		text += " A change needs a restart."
	}
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 90 {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
