package provision

import (
	"cmp"
	"fmt"
	"strings"
)

// Users maps the name of an account to its users. Each user is the text of one list entry in the
// configuration of nats-server.
type Users map[string][]string

// ServerConfig returns the accounts as a block of the configuration of nats-server.
func (a Accounts) ServerConfig(users Users) string {
	var b strings.Builder
	b.WriteString("# a reload that adds accounts does not connect them with each other: reload nats-server a second time\naccounts: {\n")
	for _, account := range a.All() {
		fmt.Fprintf(&b, "  %s: {\n", account.Name)
		if account.JetStream {
			b.WriteString("    jetstream: enabled\n")
		}
		if account.DenyByDefault {
			b.WriteString("    # a user without permissions, whose include is missing, may do nothing\n")
			b.WriteString("    default_permissions: {publish: {deny: \">\"}, subscribe: {deny: \">\"}}\n")
		}
		if account.Limits != (AccountLimits{}) {
			b.WriteString("    " + account.Limits.config() + "\n")
		}
		writeList(&b, "users", users[account.Name])
		writeList(&b, "exports", textLines(account.Exports, Export.config))
		writeList(&b, "imports", textLines(account.Imports, func(i Import) string { return i.config(i.from(a.Fleet)) }))
		if len(account.Mappings) > 0 {
			b.WriteString("    mappings: {\n")
			for _, m := range account.Mappings {
				fmt.Fprintf(&b, "      %q: %q\n", m.From, m.To)
			}
			b.WriteString("    }\n")
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")

	return b.String()
}

// writeList writes a list with one entry per line. It writes nothing for an empty list.
func writeList(b *strings.Builder, name string, entries []string) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s: [\n", name)
	for _, entry := range entries {
		fmt.Fprintf(b, "      %s\n", strings.ReplaceAll(strings.TrimSuffix(entry, "\n"), "\n", "\n      "))
	}
	b.WriteString("    ]\n")
}

func textLines[T any](all []T, line func(T) string) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = line(one)
	}

	return out
}

func (e Export) config() string {
	to := strings.Join(e.To, ", ")
	if !e.Service {
		return fmt.Sprintf("{stream: %q, accounts: [%s]}", e.Subject, to)
	}

	return fmt.Sprintf("{service: %q, accounts: [%s], response_type: stream, threshold: %q}", e.Subject, to, answerThreshold)
}

func (i Import) config(from string) string {
	kind, more := "stream", ""
	if i.Service {
		kind = "service"
	}
	if i.Local != "" {
		more = fmt.Sprintf(", to: %q", i.Local)
	}
	if i.Share {
		more += ", share: true"
	}

	return fmt.Sprintf("{%s: {account: %s, subject: %q}%s}", kind, from, i.Subject, more)
}

// from returns the name of the exporting account.
func (i Import) from(fleet Account) string { return cmp.Or(i.From, fleet.Name) }
