package command_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"runner": playRunner, "other": playOther})
}

// playRunner runs a command without end, tied to this process.
func playRunner() error {
	ready := func(string, bool) { actor.Ready() }
	_, err := command.New(nil).Run(context.Background(), command.Command{Argv: os.Args[1:], Tied: true, OnLine: ready})

	return err
}

// playOther runs a command as the user and group in the arguments, and prints the error.
func playOther() error {
	uid, _ := strconv.Atoi(os.Args[1])
	gid, _ := strconv.Atoi(os.Args[2])
	c := command.Command{Argv: []string{"true"}, As: &command.Account{Name: "x", UID: uint32(uid), GID: uint32(gid)}}
	err := command.Check(c)
	if err == nil {
		_, err = command.New(nil).Run(context.Background(), c)
	}
	fmt.Println(err)

	return nil
}
