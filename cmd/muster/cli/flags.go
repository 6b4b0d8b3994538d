package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine"
)

// Environment variables that override the agent's configuration file.
const (
	EnvLogLevel  = "MUSTER_LOG_LEVEL"
	EnvLogFormat = "MUSTER_LOG_FORMAT"
	EnvPrefix    = "MUSTER_PREFIX"
)

const envPassword = "NATS_PASSWORD"

// Flags are the global flags.
type Flags struct {
	LogLevel, LogFormat, StateDir, ConfigDir, Prefix string
	Connect                                          connect.Options
}

// ConnectFlags are the flags that choose a server and how to connect to it.
var ConnectFlags = [...]string{"context", "server", "creds", "nkey", "user", "password-file", "tlsca", "tlscert", "tlskey", "inbox-prefix", "js-api-prefix"}

// AddGlobals adds the global flags and configures the log.
func (e *Env) AddGlobals(app *fisk.Application) {
	f, c := &e.Flags, &e.Flags.Connect
	Enum(app.Flag("log-level", "Minimum log level").Default("info").Envar(EnvLogLevel), &f.LogLevel, "debug", "info", "warn", "error")
	Enum(app.Flag("log-format", "Log format").Default("text").Envar(EnvLogFormat), &f.LogFormat, "text", "json")
	app.Flag("state-dir", "Directory of the run lock, journal and copies").Default(defaultStateDir()).Envar(engine.EnvState).PlaceHolder("DIR").StringVar(&f.StateDir)
	app.Flag("config-dir", "Directory of facts.yaml, facts.d and agent.yaml").Default("/etc/muster").Envar("MUSTER_CONFIG_DIR").PlaceHolder("DIR").StringVar(&f.ConfigDir)
	app.Flag("context", "NATS context").Envar("NATS_CONTEXT").PlaceHolder("NAME").StringVar(&c.Context)
	app.Flag("server", "NATS server URLs, comma separated; repeatable").Short('s').Envar("NATS_URL").PlaceHolder("URL").StringsVar(&c.Servers)
	app.Flag("creds", "NATS credentials file").Envar("NATS_CREDS").PlaceHolder("FILE").StringVar(&c.Creds)
	app.Flag("nkey", "NATS nkey seed file").Envar("NATS_NKEY").PlaceHolder("FILE").StringVar(&c.NKey)
	app.Flag("user", "NATS user; its password is in --password-file, NATS_PASSWORD, or asked for").Envar("NATS_USER").PlaceHolder("NAME").StringVar(&c.User)
	app.Flag("password-file", "File with the password of --user").Envar("NATS_PASSWORD_FILE").PlaceHolder("FILE").StringVar(&c.PasswordFile)
	app.Flag("tlsca", "TLS certificate authority file").Envar("NATS_CA").PlaceHolder("FILE").StringVar(&c.TLSCA)
	app.Flag("tlscert", "TLS client certificate file").Envar("NATS_CERT").PlaceHolder("FILE").StringVar(&c.TLSCert)
	app.Flag("tlskey", "TLS client key file").Envar("NATS_KEY").PlaceHolder("FILE").StringVar(&c.TLSKey)
	app.Flag("inbox-prefix", "Prefix of the subjects for answers; for an operator without administrator rights _INBOX_ and the name").Envar("NATS_INBOX_PREFIX").PlaceHolder("PREFIX").StringVar(&c.InboxPrefix)
	app.Flag("js-api-prefix", "Prefix of the JetStream API (default: detected)").Envar("NATS_JS_API_PREFIX").PlaceHolder("PREFIX").StringVar(&c.APIPrefix)
	app.Flag("prefix", "Prefix of the fleet's buckets, streams and subjects").Default("muster").Envar(EnvPrefix).PlaceHolder("NAME").StringVar(&f.Prefix)
	for _, flag := range app.Model().Flags {
		e.globals[flag.Name] = true
	}
	app.PreAction(e.prepare)
}

// defaultStateDir returns the node's directory for root, and the user's directory otherwise.
func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/muster"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "muster")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "muster-state")
	}

	return filepath.Join(home, ".local", "state", "muster")
}

// enumFlag is a flag with a list of valid words.
type enumFlag struct {
	target *string
	words  []string
	// meant maps words that users write instead to words of the list.
	meant map[string]string
}

// Enum limits the values of a flag to words.
func Enum(flag *fisk.FlagClause, target *string, words ...string) {
	EnumMeant(flag, target, nil, words...)
}

// EnumMeant limits the values of a flag to words. The hint of an error uses meant, which maps other words to
// words of the list.
func EnumMeant(flag *fisk.FlagClause, target *string, meant map[string]string, words ...string) {
	flag.HintOptions(words...).SetValue(enumFlag{target, words, meant})
}

// EnumArg limits the values of an argument to words.
func EnumArg(arg *fisk.ArgClause, target *string, words ...string) {
	arg.HintOptions(words...).SetValue(enumFlag{target: target, words: words})
}

// Set accepts one of the words.
func (f enumFlag) Set(text string) error {
	if !slices.Contains(f.words, text) {
		return fmt.Errorf("not one of %s%s", strings.Join(f.words, ", "), DidYouMean(cmp.Or(f.meant[text], text), f.words))
	}
	*f.target = text

	return nil
}

// String returns the word.
func (f enumFlag) String() string { return *f.target }

// DidYouMean returns a question about the most similar known word, empty if none is similar.
func DidYouMean(word string, known []string) string {
	if near := document.Nearest(word, known); near != "" {
		return ", did you mean " + near + "?"
	}

	return ""
}

// intFlag rejects 1.9. fisk would truncate it to 1.
type intFlag struct{ target *int }

// Int makes the value of a flag a whole number.
func Int(flag *fisk.FlagClause, target *int) { flag.SetValue(intFlag{target}) }

// Set parses the value.
func (f intFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("not a whole number")
	}
	*f.target = n

	return nil
}

// String returns the value.
func (f intFlag) String() string { return strconv.Itoa(*f.target) }

// newName returns the current name of a renamed flag, empty for other flags.
func newName(old string) string {
	switch old {
	case "within":
		return "timeout"
	case "in-group":
		return "group"
	case "dry-run":
		return "noop"
	default:
		return ""
	}
}

// OldFlag adds a hidden flag with the old name of a flag. The caller sets its value, which is the value of
// the renamed flag.
func OldFlag(cmd *fisk.CmdClause, old string) *fisk.FlagClause {
	return cmd.Flag(old, "Old name of --"+newName(old)).Hidden()
}

// FlagNames returns the names of the flags that the command already has.
func FlagNames(cmd *fisk.CmdClause) []string {
	var names []string
	for _, f := range cmd.Model().Flags {
		names = append(names, f.Name)
	}

	return names
}

// noteOldNames sets the current flag for each given old name, and logs the new name. It returns an error if
// both are given, because the user may have meant a flag of the resource by the new name.
func (e *Env) noteOldNames(old []string, cmd *fisk.CmdClause) error {
	isCompletion := e.given[CompletionFlag]
	for _, o := range old {
		now := newName(o)
		if e.given[now] && !isCompletion {
			hint := ""
			if cmd != nil && cmd.GetFlag(typeFlag(cmd.Model().Name, now)) != nil {
				hint = fmt.Sprintf("; the flag of the resource is --%s", typeFlag(cmd.Model().Name, now))
			}
			return fmt.Errorf("--%s is --%s now, give one of them%s", o, now, hint)
		}
	}
	for _, o := range old {
		e.given[newName(o)] = true
		if !isCompletion {
			e.Log.Warn(fmt.Sprintf("--%s is --%s now", o, newName(o)))
		}
	}

	return nil
}

// NodeID returns the default node id of a host name: WEB01.Example.COM becomes WEB01_Example_COM. It returns
// an id unchanged.
func NodeID(name string) string { return strings.ReplaceAll(name, ".", "_") }

// nodeNames is a fisk.Value that maps host names to node ids.
type nodeNames struct {
	set          func(id string)
	isCumulative bool
	text         string
}

func (n *nodeNames) Set(name string) error {
	n.text = NodeID(name)
	n.set(n.text)

	return nil
}

func (n *nodeNames) String() string { return n.text }

// IsCumulative reports whether the flag or argument may be repeated.
func (n *nodeNames) IsCumulative() bool { return n.isCumulative }

// setter is a flag or an argument.
type setter interface{ SetValue(fisk.Value) }

// NodeVar makes a flag or an argument take the id or host name of one node.
func NodeVar(of setter, id *string) {
	of.SetValue(&nodeNames{set: func(given string) { *id = given }})
}

// NodesVar makes a flag or an argument take the ids or host names of nodes.
func NodesVar(of setter, ids *[]string) {
	of.SetValue(&nodeNames{set: func(given string) { *ids = append(*ids, given) }, isCumulative: true})
}
