package view

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// Package is a row: an installed package of a node.
type QueryPackage struct {
	Node string
	model.Package
}

// PackageTable returns the table of packages.
func PackageTable() QueryTable {
	return QueryTable{Columns: targets.PackageNames(), Default: targets.PackageNames()}
}

// Value returns the value of a column, nil for an unknown column.
func (p QueryPackage) Value(column string) any {
	switch column {
	case "node":
		return p.Node
	case "name":
		return p.Name
	case "version":
		return p.Version
	case "arch":
		return p.Arch
	case "manager":
		return p.Manager
	default:
		return nil
	}
}

// MaxPackages is the maximum number of rows of an answer.
const MaxPackages = 1_000_000

// PackageMatches are the packages that match an expression.
type PackageMatches struct {
	Rows []QueryPackage
	// Unstored are the nodes without an inventory, Unreadable the nodes with an unreadable inventory.
	// The expression fails for a package of the nodes in Undecided. All are sorted.
	Unstored, Unreadable, Undecided []string
	// Partial has the reason of each incomplete inventory, by node.
	Partial map[string]string
	// Full reports whether more than MaxPackages match.
	Full bool
}

// MatchPackages evaluates an expression for the packages of some nodes, and adds the packages to unknown. The error is the
// error of all, or wraps target.ErrEnded.
func MatchPackages(run *targets.PackageEvaluator, unknown *targets.Finder, nodes []string, all iter.Seq2[model.Inventory, error]) (out PackageMatches, err error) {
	missing := map[string]bool{}
	for _, n := range nodes {
		missing[n] = true
	}
	out.Partial = map[string]string{}
	for i, err := range all {
		if err != nil {
			return out, err
		}
		if !missing[i.Node] {
			continue // the node is not selected, or stored its inventory again during the read
		}
		delete(missing, i.Node)
		if i.Unreadable == "" {
			unknown.AddPackages(i.Packages)
		}
		if err := out.add(run, i); err != nil {
			return out, err
		}
	}
	for n := range missing {
		out.Unstored = append(out.Unstored, n)
	}
	for _, names := range [][]string{out.Unstored, out.Unreadable, out.Undecided} {
		slices.Sort(names)
	}
	slices.SortStableFunc(out.Rows, func(a, b QueryPackage) int { return compareValues("node", a.Node, b.Node) })

	return out, nil
}

// add adds the matching packages of an inventory.
func (m *PackageMatches) add(run *targets.PackageEvaluator, i model.Inventory) error {
	if i.Unreadable != "" {
		m.Unreadable = append(m.Unreadable, i.Node)
		return nil
	}
	if i.Incomplete != "" {
		m.Partial[i.Node] = i.Incomplete
	}
	undecided := false
	for _, p := range i.Packages {
		is, err := run.Match(i.Node, p)
		switch {
		case errors.Is(err, targets.ErrEnded):
			return fmt.Errorf("packages of node %s: %w", i.Node, err)
		case err != nil:
			undecided = true
		case !is:
		case len(m.Rows) == MaxPackages:
			m.Full = true
		default:
			m.Rows = append(m.Rows, QueryPackage{i.Node, p})
		}
	}
	if undecided {
		m.Undecided = append(m.Undecided, i.Node)
	}

	return nil
}
