package fleetcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/resources/host/files"
)

// permissionsCommand implements muster fleet permissions.
type permissionsCommand struct {
	*cli.Env
	print.Format
	names                             []string
	from, dir, add, newPassword       string
	hasFrom                           bool
	groups, nodes                     []string
	viewer, operator, oneAccount, jwt bool
	serve, actions                    bool
	requests                          []string
}

func addPermissions(env *cli.Env, parent *fisk.CmdClause) {
	c := &permissionsCommand{Env: env}
	cmd := parent.Command("permissions", "Print NATS permissions for nodes, operators or a dashboard")
	cmd.HelpLong("Needs no connection. The block belongs to a user in the configuration of nats-server, in the account NODES or OPERATORS that muster fleet accounts prints, with --requests in REQUESTERS; --jwt prints the claims of a user JWT. A node that changes its groups needs new permissions. An operator connects with --inbox-prefix _INBOX_NAME.\n\n" +
		"With --add it adds the users to a configuration file of nats-server, in the account of their role: each with its permissions in NAME.conf and its password in NAME.password, in the same directory. It creates the password unless the file exists. --new-password replaces the password of a user there. The rest of the file stays as it is. Neither reloads the server.\n\n" +
		"With --dir it writes a file for each name, such as web01.conf, and lists the changed files. " +
		"--from reads names from a file: one name on each line, then its groups, separated by commas, in addition to --groups; # begins a comment. A mistake in one line prevents all writes.\n\n" +
		"  muster fleet permissions web01 --groups web,linux\n  muster fleet permissions web02 --groups web --add nats.conf\n  muster fleet permissions web02 --new-password nats.conf\n  muster fleet permissions --from nodes.txt --dir /etc/nats/nodes\n  muster fleet permissions alice --viewer\n  muster fleet permissions bob --operator --groups web --nodes db01\n  muster fleet permissions wall --serve --actions --requests run,preview")
	cmd.Arg("name", "Ids of nodes, or names of operators").StringsVar(&c.names)
	cmd.Flag("from", "A file with names and their groups, - for standard input").PlaceHolder("FILE").IsSetByUser(&c.hasFrom).StringVar(&c.from)
	cmd.Flag("dir", "Write one file per name into this directory; created if needed").PlaceHolder("DIR").StringVar(&c.dir)
	cmd.Flag("add", "Add the users to this configuration file of nats-server").PlaceHolder("FILE").StringVar(&c.add)
	cmd.Flag("new-password", "Replace the password of the user in this configuration file of nats-server").PlaceHolder("FILE").StringVar(&c.newPassword)
	cmd.Flag("groups", "Groups of the node or operator, comma separated; nodes are always in group all").PlaceHolder("GROUP,…").StringsVar(&c.groups)
	cmd.Flag("viewer", "Permissions for a user who reads assignments, nodes and reports").UnNegatableBoolVar(&c.viewer)
	cmd.Flag("operator", "Permissions for an operator of --groups and --nodes").UnNegatableBoolVar(&c.operator)
	cmd.Flag("serve", "Permissions for muster fleet serve, which reads everything except bundles").UnNegatableBoolVar(&c.serve)
	cmd.Flag("actions", "With --serve, also permit pausing and resuming nodes and groups").UnNegatableBoolVar(&c.actions)
	cmd.Flag("requests", "With --serve, also permit runs of assigned manifests on all nodes (run), and previews, which run guards (preview)").PlaceHolder("VERB,…").StringsVar(&c.requests)
	cmd.Flag("nodes", "Nodes of the operator, comma separated").PlaceHolder("NODE,…").StringsVar(&c.nodes)
	cmd.Flag("one-account", "Permissions for a node in the account with the streams; nodes must trust each other").UnNegatableBoolVar(&c.oneAccount)
	cmd.Flag("jwt", "Print the claims of a user JWT").UnNegatableBoolVar(&c.jwt)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *permissionsCommand) run(ctx context.Context) error {
	users, err := c.users()
	if err == nil {
		err = c.checkOutput(len(users))
	}
	if err != nil {
		return err
	}
	if c.newPassword != "" {
		return cli.UnlessNoop(func(ctx context.Context) error { return c.setPassword(ctx, users[0]) })(ctx)
	}
	documents, sizes, wrong := make([][]byte, len(users)), make([]int, len(users)), []error{}
	for i, u := range users {
		allowed, err := c.allowed(u)
		if err != nil {
			wrong = append(wrong, u.Wrong(err))
			continue
		}
		if documents[i], err = c.document(allowed); err != nil {
			return err
		}
		sizes[i] = allowed.JWTSize(u.Name)
	}
	if err := errors.Join(wrong...); err != nil {
		return cli.Usagef("%w", err)
	}
	if c.jwt && !c.IsDocument() {
		c.warnOfLong(users, sizes)
	}
	switch {
	case c.add != "":
		return cli.UnlessNoop(func(ctx context.Context) error { return c.addUsers(ctx, users, documents) })(ctx)
	case c.dir != "":
		return c.write(ctx, users, documents)
	}
	if !c.jwt && !c.IsDocument() && c.isOfNode() && len(c.names) == 1 && len(c.groups) == 0 && !c.hasFrom {
		c.Print.Remark("# permissions of a node called %s; for a person add --viewer or --operator", print.Text(users[0].Name))
	}
	_, err = c.Print.Out.Write(documents[0])

	return err
}

// checkOutput returns an error for contradictory output flags.
func (c *permissionsCommand) checkOutput(users int) error {
	given := 0
	for _, flag := range []string{c.dir, c.add, c.newPassword} {
		if flag != "" {
			given++
		}
	}
	edits := c.add != "" || c.newPassword != ""
	switch {
	case given > 1:
		return cli.Usagef("give one of --dir, --add and --new-password")
	case edits && (c.jwt || c.IsDocument()):
		return cli.Usagef("--add and --new-password edit a configuration file: remove --jwt, --json and --yaml")
	case c.newPassword != "" && users != 1:
		return cli.Usagef("--new-password takes one name")
	case c.newPassword != "" && (len(c.groups)+len(c.nodes)+len(c.requests) > 0 || c.actions || !c.isOfNode()):
		return cli.Usagef("--new-password does not change permissions: remove --groups and the role")
	case users != 1 && given == 0:
		return cli.Usagef("%d names: give --dir DIR to write one file per name, or --add FILE", users)
	}

	return nil
}

// isOfNode reports whether the permissions are for a node: no role flag is given.
func (c *permissionsCommand) isOfNode() bool {
	return !c.viewer && !c.operator && !c.serve && !c.oneAccount
}

// document formats permissions for output.
func (c *permissionsCommand) document(allowed provision.Permissions) ([]byte, error) {
	if c.IsDocument() {
		var out bytes.Buffer
		err := print.Printer{Out: &out}.Document(allowed, c.YAML)

		return out.Bytes(), err
	}
	if c.jwt {
		return allowed.ClaimsJSON()
	}
	text := allowed.ServerConfig()
	if len(c.requests) > 0 {
		text = "# for a user of the account REQUESTERS\n" + text
	}

	return []byte(text), nil
}

// allowed returns the permissions of a user in the role that the flags name.
func (c *permissionsCommand) allowed(u provision.NamedUser) (provision.Permissions, error) {
	groups, nodes := append(splitLists(c.groups), u.Groups...), splitLists(c.nodes)
	switch {
	case c.serve && (c.viewer || c.operator || len(groups)+len(nodes) > 0):
		return provision.Permissions{}, errors.New("--serve includes all groups and nodes: remove --viewer, --operator, --groups and --nodes")
	case (c.actions || len(c.requests) > 0) && !c.serve:
		return provision.Permissions{}, errors.New("--actions and --requests need --serve")
	case c.viewer && (c.operator || len(groups)+len(nodes) > 0):
		return provision.Permissions{}, errors.New("--viewer includes all groups and nodes: remove --operator, --groups and --nodes")
	case (c.viewer || c.operator || c.serve) && c.oneAccount:
		return provision.Permissions{}, errors.New("--one-account is for nodes: remove it, or remove --viewer, --operator and --serve")
	case len(nodes) > 0 && !c.operator:
		return provision.Permissions{}, errors.New("--nodes needs --operator")
	case c.operator && len(groups)+len(nodes) == 0:
		return provision.Permissions{}, errors.New("an operator assigns to groups or nodes: give --groups GROUP,… or --nodes NODE,… (--viewer only reads)")
	case c.viewer:
		return provision.ViewerPermissions(c.Flags.Prefix, u.Name)
	case c.serve:
		return provision.DashboardPermissions(c.Flags.Prefix, u.Name, provision.Serving{Pauses: c.actions, Requests: splitLists(c.requests)})
	case c.operator:
		return provision.OperatorPermissions(c.Flags.Prefix, u.Name, groups, nodes)
	case c.oneAccount:
		return provision.NodePermissions(kvstore.OwnAPI, c.Flags.Prefix, u.Name, groups)
	default:
		return provision.NodePermissions(kvstore.JoinedAPI, c.Flags.Prefix, u.Name, groups)
	}
}

// splitLists splits comma-separated lists.
func splitLists(lists []string) []string {
	var words []string
	for _, list := range lists {
		words = append(words, strings.Split(list, ",")...)
	}

	return words
}

// remarkLine prints the server setting that JWT users need.
func remarkLine(env *cli.Env) {
	env.Print.Remark("nats-server needs max_control_line: %s in its configuration: the JWT of a node in two groups is longer than the default of 4 KB", provision.ControlLine)
}

// warnOfLong warns if a JWT may exceed the default limit of nats-server, and names the longest. Otherwise it
// prints a remark about the setting. sizes are the sizes of the users' JWTs.
func (c *permissionsCommand) warnOfLong(users []provision.NamedUser, sizes []int) {
	long := 0
	for _, size := range sizes {
		if size > provision.LongJWT {
			long++
		}
	}
	if long == 0 {
		remarkLine(c.Env)
		return
	}
	size := slices.Max(sizes)
	about := []any{"user", users[slices.Index(sizes, size)].Name, "bytes", size}
	if long > 1 {
		about = append(about, "others", long-1)
	}
	c.Log.Warn("this JWT may be too long for nats-server by default: set max_control_line: "+provision.ControlLine+" in the configuration of each server", about...)
}

// users returns the users from the command line and from the file. A name given twice is an error.
func (c *permissionsCommand) users() ([]provision.NamedUser, error) {
	var all []provision.NamedUser
	for _, name := range c.names {
		all = append(all, provision.NamedUser{Name: name})
	}
	if c.hasFrom {
		name, text, err := c.readFrom()
		if err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		read, err := provision.ParseUsers(name, string(text))
		if err != nil {
			return nil, cli.Usagef("%w", err)
		}
		all = append(all, read...)
	}
	if len(all) == 0 {
		return nil, cli.Usagef("no name: give names, or --from FILE with one name per line")
	}
	for i := range all {
		if c.isOfNode() {
			all[i].Name = cli.NodeID(all[i].Name)
		}
	}
	if err := provision.CheckNames(all); err != nil {
		return nil, cli.Usagef("%w", err)
	}

	return all, nil
}

// readFrom reads the file of --from.
func (c *permissionsCommand) readFrom() (name string, text []byte, err error) {
	if c.from == "" { // fisk turns a lone dash into an empty value
		name = "standard input"
		text, err = io.ReadAll(c.Stdin)
	} else {
		name = c.from
		text, err = os.ReadFile(c.from)
	}

	return name, text, err
}

// readable is the mode of permission files: nats-server reads them, and they are not secret.
const readable = 0o644

// write writes a document for each user into the directory, and prints the changed paths.
func (c *permissionsCommand) write(ctx context.Context, users []provision.NamedUser, documents [][]byte) error {
	if err := os.Mkdir(c.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--dir: %w", err)
	}
	changed, disk := 0, files.New(files.Options{})
	for i, u := range users {
		path := filepath.Join(c.dir, u.Name+c.extension())
		if now, err := files.Read(path, int64(len(documents[i]))); err == nil && bytes.Equal(now, documents[i]) {
			continue
		}
		if err := disk.Write(ctx, path, bytes.NewReader(documents[i]), files.OwnAttrs(readable)); err != nil {
			return fmt.Errorf("wrote %d of %d files: %w", i, len(users), err)
		}
		changed++
		c.Print.Printf("%s\n", path)
	}
	c.Print.Remark("%d written, %d up to date", changed, len(users)-changed)

	return nil
}

// extension returns the file name extension for the output format.
func (c *permissionsCommand) extension() string {
	switch {
	case c.YAML:
		return ".yaml"
	case c.IsDocument(), c.jwt:
		return ".json"
	default:
		return ".conf"
	}
}
