package arch

// Rule is a rule; its name states the requirement.
type Rule struct {
	Name  string
	Check func(Tree) []Breach
}

// Rules returns every rule.
func Rules() []Rule {
	return []Rule{
		{"imports go one way", eachFile(checkRooms)},
		{"only kvstore speaks NATS", eachFile(checkNATS)},
		{"only the program links goss", eachFile(checkGoss)},
		{"only the scaffold renderer imports the library", eachFile(checkScaffold)},
		{"only the reader of documents parses YAML", eachFile(checkYAML)},
		{"only host starts processes", eachFile(checkProcesses)},
		{"only host touches files", eachFile(checkDisk)},
		{"removals stay on one file system", eachFile(checkRemoval)},
		{"deciding is pure", eachFile(checkPure)},
		{"callers pass the time", eachFile(checkClock)},
		{"goroutines are awaited", eachFile(checkGoroutines)},
		{"no func init", eachFile(checkInit)},
		{"no mutable package variables", checkVariables},
		{"tests await conditions", eachFile(checkSleep)},
		{"tests are never skipped", eachFile(checkSkip)},
		{"exported names are documented", checkDocs},
	}
}

func eachFile(check func(*File) []Breach) func(Tree) []Breach {
	return func(tree Tree) []Breach {
		var out []Breach
		for _, f := range tree {
			out = append(out, check(f)...)
		}
		return out
	}
}
