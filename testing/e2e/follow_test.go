package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/markdown"
)

// follower follows a page on an empty machine, block by block, like a reader:
//
//	sh run       once, in the operator's terminal
//	sh look      repeatedly, until the output matches the page
//	sh terminal  in a new terminal, until the end
//	sh download  never: the tests have the programs
//	sh debian …  never: it needs root, apt and systemd; a test of the rigs runs it
//	text N       wait until terminal N prints the text again (1 is the server's)
//
// A text block without a number is the expected output of the block before. The page assumes root
// and default addresses; the test uses a directory and free addresses.
type follower struct {
	*show
	addresses *strings.Replacer
	// operator contains the shell settings of the operator's terminal.
	operator string
	// terminals are the other terminals, in the order in which they were opened.
	terminals []*process
	// awaited counts the texts that terminals printed.
	awaited map[string]int
}

// follow returns a follower, at a machine with nothing but the two programs.
func follow(t *testing.T) *follower {
	t.Helper()
	f := &follower{show: newShow(t, ""), awaited: map[string]int{}, addresses: strings.NewReplacer(
		"127.0.0.1:4222", loopback.Address(t).String(), "127.0.0.1:8420", loopback.Address(t).String(),
	)}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The nats-server of go.mod replaces the one that a reader installs.
	pid := filepath.Join(f.dir, "nats.pid")
	server := write(t, filepath.Join(f.dir, "nats-server"), "#!/bin/sh -e\nif [ \"$*\" = '--signal reload' ]; then kill -HUP $(cat "+pid+"); exit; fi\n"+
		"[ \"$1\" = -c ]\necho $$ >"+pid+"\n"+serverVariable+"=\"$2\" exec "+program+"\n")
	if err := os.Chmod(server, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i := len(f.terminals) - 1; i >= 0; i-- {
			f.interrupt(f.terminals[i])
		}
	})

	return f
}

// interrupt is ctrl-C in a terminal.
func (f *follower) interrupt(p *process) {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	if _, text := p.wait(); f.t.Failed() {
		f.t.Log(text)
	}
}

// shell returns what runs a text in a new shell of the machine.
func (f *follower) shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", "exec 2>&1\n"+f.addresses.Replace(f.rewrite(text)))
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "PATH="+f.dir+":"+os.Getenv("PATH"), "HOME="+f.dir, "TMPDIR="+f.dir, "NO_COLOR=1",
		"MUSTER_STATE_DIR="+f.dir+"/var/lib/muster", "MUSTER_CONFIG_DIR="+f.dir+"/etc/muster")

	return cmd
}

// try runs a block in the operator's terminal.
func (f *follower) try(text string) (string, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), deadline)
	defer cancel()
	out, err := f.shell(ctx, f.operator+text).CombinedOutput()

	return strings.ReplaceAll(string(out), f.dir, ""), err
}

// open runs a block in a new terminal. The last line of the block starts its program.
func (f *follower) open(text string) *process {
	f.t.Helper()
	before, program := "", strings.TrimSpace(text)
	if at := strings.LastIndex(program, "\n"); at >= 0 {
		before, program = program[:at+1], program[at+1:]
	}
	p := &process{t: f.t, cmd: f.shell(context.WithoutCancel(f.t.Context()), before+"exec "+program), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.text, &p.text
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		p.done <- p.cmd.Wait()
		close(p.done)
	}()
	f.terminals = append(f.terminals, p)

	return p
}

// must runs a block in the operator's terminal, with success.
func (f *follower) must(text string) string {
	f.t.Helper()
	out, err := f.try(text)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", text, err, out)
	}

	return out
}

// page follows a page, and ends the test at the first thing that differs from it.
func (f *follower) page(text string, notOfATerminal func(markdown.Block)) {
	f.t.Helper()
	blocks := append(markdown.Blocks(text), markdown.Block{})
	for i, b := range blocks[:len(blocks)-1] {
		want := markdown.Block{Line: b.Line}
		if next := blocks[i+1]; next.Language == "text" && next.Info == "" {
			want = next
		}
		switch {
		case b.Language == "text" && b.Info != "":
			f.await(b)
		case b.Language == "yaml":
			line, _, _ := strings.Cut(b.Text, "\n")
			write(f.t, filepath.Join(f.dir, "fleet", strings.TrimPrefix(line, "# ")), f.addresses.Replace(f.rewrite(b.Text)))
		case b.Language != "sh":
		case b.Info == "terminal":
			p := f.open(b.Text)
			await(f.t, b.Text+" prints "+want.Text, func() bool { return missing(f.addresses.Replace(want.Text), p.text.String()) == "" })
		case b.Info == "run":
			out, err := f.try(b.Text)
			if line := missing(f.addresses.Replace(want.Text), out); err != nil || line != "" {
				f.t.Fatalf("line %d: %v, %q is not in its place in\n%s", b.Line, err, line, out)
			}
			for line := range strings.Lines(b.Text) {
				if strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "cd ") {
					f.operator += line
				}
			}
		case b.Info == "look":
			f.look(b, want)
		default:
			notOfATerminal(b)
		}
	}
}

// await waits until a terminal prints a block of text once more.
func (f *follower) await(b markdown.Block) {
	f.t.Helper()
	number, err := strconv.Atoi(b.Info)
	if err != nil || number < 1 || number > len(f.terminals) {
		f.t.Fatalf("line %d: there is no terminal %q", b.Line, b.Info)
	}
	text := strings.TrimSpace(b.Text)
	f.awaited[b.Info+text]++
	await(f.t, "terminal "+b.Info+" prints "+text, func() bool {
		return strings.Count(f.terminals[number-1].text.String(), text) >= f.awaited[b.Info+text]
	})
}

// look repeats a block until it shows what the page shows.
func (f *follower) look(b, want markdown.Block) {
	f.t.Helper()
	limit := time.Now().Add(deadline)
	for {
		out, err := f.try(b.Text)
		line := missing(want.Text, out)
		if err == nil && line == "" {
			return
		}
		if time.Now().After(limit) {
			f.t.Fatalf("line %d: %v, %q is not in its place in\n%s", b.Line, err, line, out)
		}
	}
}
