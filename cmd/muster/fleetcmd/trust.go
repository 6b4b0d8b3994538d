package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// AddTrust adds the commands to the command line.
func AddTrust(env *cli.Env, app *fisk.Application) {
	cmd := app.Command("trust", "Manage the keys that operators sign with")
	cmd.HelpLong("A node with keys below trust in its agent.yaml accepts only assignments, removals and ensure requests signed with them.\n\n" +
		"  muster trust key new ~/.config/muster/alice.nk\n" +
		"  muster fleet push --group web --sign-key ~/.config/muster/alice.nk motd.yaml")
	key := cmd.Command("key", "Create and list signing keys")
	addNew(env, key)
	addList(env, key)
}

// extension is the file name extension of key files.
const extension = ".nk"

// newCommand implements muster trust key new.
type newCommand struct {
	*cli.Env
	print.Format
	path string
}

// keyDocument is a key in the output.
type keyDocument struct {
	File     string     `json:"file,omitempty"`
	Name     string     `json:"name,omitempty"`
	Key      signed.Key `json:"key,omitempty"`
	Families []string   `json:"families,omitempty"`
	Error    string     `json:"error,omitempty"`
}

func addNew(env *cli.Env, parent *fisk.CmdClause) {
	c := &newCommand{Env: env}
	cmd := parent.Command("new", "Create a signing key, and print its public part")
	cmd.HelpLong("The file holds the seed, and only its owner may read it. Nodes need the public part, in trust.keys of agent.yaml.\n\n  muster trust key new ~/.config/muster/alice.nk")
	cmd.Arg("file", "New file for the key").Required().StringVar(&c.path)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *newCommand) run(context.Context) error {
	key, err := assign.NewKey(c.path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s already exists; give another file", c.path)
	case err != nil:
		return err
	}

	return c.Print.Result(c.Format, keyDocument{File: c.path, Key: key}, func() { c.Print.Printf("%s\n", key) })
}

// listCommand implements muster trust key ls.
type listCommand struct {
	*cli.Env
	print.Format
	path   string
	config string
}

func addList(env *cli.Env, parent *fisk.CmdClause) {
	c := &listCommand{Env: env}
	cmd := parent.Command("ls", "List key files, or the keys that an agent trusts")
	cmd.HelpLong("Lists a key file, or the key files *" + extension + " in a directory (default: the current directory). With --config it lists the trusted keys in agent.yaml.\n\n  muster trust key ls ~/.config/muster\n  muster trust key ls alice.nk\n  muster trust key ls --config /etc/muster/agent.yaml")
	cmd.Arg("path", "Key file, or directory of key files").Default(".").StringVar(&c.path)
	cmd.Flag("config", "Configuration of an agent").PlaceHolder("FILE").StringVar(&c.config)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *listCommand) run(context.Context) error {
	find, head, none := c.keysOfPath, []string{"FILE", "KEY"}, "no key files *"+extension+" in "+c.path
	if c.path == "." {
		none = "no key files *" + extension + " in this directory; give a key file or another directory"
	}
	if c.config != "" {
		find, head, none = c.keysOfConfig, []string{"NAME", "KEY", "FAMILIES"}, "no trusted keys; signatures are not required"
	}
	keys, err := find()
	if err != nil {
		return err
	}
	rows := make([][]string, len(keys))
	for i, k := range keys {
		rows[i] = []string{cmp.Or(k.File, k.Name), cmp.Or(k.Error, string(k.Key)), strings.Join(k.Families, ", ")}[:len(head)]
	}

	return c.Print.Result(c.Format, keys, func() { c.Print.Table(head, rows, none) })
}

// keysOfPath returns the key of a file, or the keys of a directory. Unusable key files are listed with the
// reason.
func (c *listCommand) keysOfPath() ([]keyDocument, error) {
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, cli.FileError("key file or directory", c.path, err)
	}
	if !info.IsDir() {
		file, err := assign.OpenKey(c.path)
		if err != nil {
			return nil, cli.FileError("key file", c.path, err)
		}
		return []keyDocument{{File: c.path, Key: file.Key()}}, nil
	}
	entries, err := os.ReadDir(c.path)
	if err != nil {
		return nil, cli.FileError("directory", c.path, err)
	}
	keys := []keyDocument{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != extension {
			continue
		}
		k := keyDocument{File: filepath.Join(c.path, e.Name())}
		if file, err := assign.OpenKey(k.File); err != nil {
			k.Error = err.Error()
		} else {
			k.Key = file.Key()
		}
		keys = append(keys, k)
	}

	return keys, nil
}

func (c *listCommand) keysOfConfig() ([]keyDocument, error) {
	text, err := files.ReadTrusted(c.config, manifest.DefaultMaxBytes, paths.Author{})
	if err != nil {
		return nil, cli.FileError("configuration", c.config, err)
	}
	parsed, err := config.Parse(c.config, text, config.Default(cli.Hostname()))
	if err != nil {
		return nil, err
	}
	keys := []keyDocument{}
	for _, k := range parsed.Trust.Keys {
		keys = append(keys, keyDocument{Name: k.Name, Key: signed.Key(k.Key), Families: k.Families})
	}

	return keys, nil
}
