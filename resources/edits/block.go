package edits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// BlockSpec is the properties of a block.
type BlockSpec struct {
	Target
	// Content is nil for a query.
	Content *string `json:"content,omitempty" sensitive:"true" jsonschema_description:"The lines between the marks; required except with absent"`
	Marker  string  `json:"marker,omitempty" filled:"true" jsonschema_description:"The line before and after the block, with {mark} for BEGIN and END, and maybe {name}; default: # {mark} muster {name}"`
	Where
	// Order is nil for the default.
	Order *int `json:"order,omitempty" jsonschema_description:"Order among blocks that are added at the same place, then by name; default: 50"`
	Creation
}

// Block returns the type block with its providers, for resources.All.
func Block(providers ...Posix) *resource.Type {
	return resource.Of(kind{"block", "Blocks of lines between two marks in a file", func() Part { return &BlockSpec{} }}, providers...)
}

const (
	defaultMarker = "# {mark} muster {name}"
	defaultOrder  = 50
	markWord      = "{mark}"
)

func (s *BlockSpec) ref() model.Ref { return model.Ref{Type: "block", Name: s.Name} }

func (s *BlockSpec) isComplete() bool { return s.Content != nil || s.isAbsent() }

// id is the first mark.
func (s *BlockSpec) id() string {
	begin, _ := s.marks()

	return "block:" + begin
}

// marks returns the lines before and after the block.
func (s *BlockSpec) marks() (begin, end string) {
	marker := cmp.Or(s.Marker, defaultMarker)
	mark := func(word string) string {
		return strings.ReplaceAll(strings.ReplaceAll(marker, markWord, word), "{name}", s.Name)
	}

	return mark("BEGIN"), mark("END")
}

// content returns the lines of the block.
func (s *BlockSpec) content() []string {
	text := strings.TrimSuffix(strings.ReplaceAll(*s.Content, "\r\n", "\n"), "\n")
	if text == "" && *s.Content != "\n" {
		return nil
	}

	return strings.Split(text, "\n")
}

// Validate reports every problem of the properties.
func (s *BlockSpec) Validate() model.Problems {
	var out model.Problems
	s.validatePath(&out)
	s.validateCreation(&out, s.Ensure)
	begin, end := s.marks()
	switch {
	case strings.ContainsAny(s.Marker, "\n\r\x00"):
		out.Property("marker", "write it on one line", "a marker is one line")
	case s.Marker != "" && !strings.Contains(s.Marker, markWord):
		out.Property("marker", "for example marker: '// {mark} {name}'", "`marker` has no {mark}: both marks would be the same line")
	case strings.ContainsAny(begin, "\n\r\x00"):
		out.Property("name", "write it on one line, or set marker", "the name is part of a mark, which is one line")
	}
	if s.isAbsent() {
		return out
	}
	s.validateWhere(&out)
	if s.Content == nil {
		out.Property("content", "", "`content` is required unless ensure is absent")
		return out
	}
	if strings.ContainsRune(*s.Content, 0) {
		out.Property("content", "", "the content has a NUL byte")
	}
	for i, l := range s.content() {
		if strings.HasSuffix(l, "\r") {
			out.Property("content", "remove it: lines end as the lines of the file", "line %d of the content ends with a carriage return", i+1)
		}
		if l == begin || l == end {
			out.Property("content", "remove that line, or set another marker", "line %d of the content is a mark", i+1)
		}
	}

	return out
}

// Warnings returns properties without effect.
func (s *BlockSpec) Warnings() model.Problems {
	more := s.set()
	if s.Content != nil {
		more = append(more, "content")
	}
	if s.Order != nil {
		more = append(more, "order")
	}
	if s.isAbsent() {
		return s.warnings(s.Ensure, more...)
	}

	return append(s.warnWhere(), s.warnings(s.Ensure)...)
}

// extent is the lines of a block: the first mark, and the line after the second.
type extent struct{ begin, end int }

// find returns the lines of the block, and whether it is there. Unpaired marks are an error.
func (s *BlockSpec) find(t Text) (extent, bool, error) {
	begin, end := s.marks()
	var begins, ends []int
	for i := range t.lines {
		switch t.at(i) {
		case begin:
			begins = append(begins, i)
		case end:
			ends = append(ends, i)
		}
	}
	const remedy = ": correct the file by hand"
	switch {
	case len(begins) == 0 && len(ends) == 0:
		return extent{}, false, nil
	case len(begins) > 1:
		return extent{}, false, fmt.Errorf("the mark %q is on %s%s", begin, t.name(begins), remedy)
	case len(ends) > 1:
		return extent{}, false, fmt.Errorf("the mark %q is on %s%s", end, t.name(ends), remedy)
	case len(ends) == 0:
		return extent{}, false, fmt.Errorf("the mark %q on %s has no mark %q%s", begin, t.name(begins), end, remedy)
	case len(begins) == 0:
		return extent{}, false, fmt.Errorf("the mark %q on %s has no mark %q%s", end, t.name(ends), begin, remedy)
	case ends[0] < begins[0]:
		return extent{}, false, fmt.Errorf("the mark %q on %s is before the mark %q on %s%s", end, t.name(ends), begin, t.name(begins), remedy)
	}

	return extent{begins[0], ends[0] + 1}, true, nil
}

// overlap returns an error if a mark of another block is within the block.
func (s *BlockSpec) overlap(t Text, e extent, beside []Part) error {
	others := s.markedBeside(beside)
	for i := e.begin + 1; i < e.end-1; i++ {
		if other := others[t.at(i)]; other != nil {
			return fmt.Errorf("the block overlaps %s: its mark on %s is between %s and %s", other.ref(), t.name([]int{i}), t.name([]int{e.begin}), t.name([]int{e.end - 1}))
		}
	}

	return nil
}

// markedBeside returns the other blocks of the file by their marks.
func (s *BlockSpec) markedBeside(beside []Part) map[string]*BlockSpec {
	out := map[string]*BlockSpec{}
	for _, p := range beside {
		if other, is := p.(*BlockSpec); is && other != s {
			begin, end := other.marks()
			out[begin], out[end] = other, other
		}
	}

	return out
}

// Edit applies the block to a text.
func (s *BlockSpec) Edit(before Text, beside []Part) Edit {
	at, found, err := s.find(before)
	edit := Edit{After: before, Err: err, Present: found}
	if found {
		edit.Lines = before.numbers([]int{at.begin, at.end - 1})
	}
	switch {
	case err != nil || !s.isComplete() || s.isAbsent() && !found:
		return edit
	case !found:
		return s.add(before, beside)
	case !s.isAbsent() && s.isCurrent(before, at):
		return edit
	}
	edit.Err = s.overlap(before, at, beside)
	edit.Change = model.Change{Action: actionEdit, Property: "content", Message: "Would have removed the block"}
	edit.After = before.remove(at.begin, at.end)
	if !s.isAbsent() {
		edit.Change.Message = "Would have updated the block"
		edit.After, edit.Present = before.remove(at.begin+1, at.end-1).insert(at.begin+1, s.content()...), false
	}

	return edit
}

// isCurrent reports whether the block has the wanted content.
func (s *BlockSpec) isCurrent(t Text, at extent) bool {
	want := s.content()
	if len(want) != at.end-at.begin-2 {
		return false
	}
	for i := range want {
		if t.at(at.begin+1+i) != want[i] {
			return false
		}
	}

	return true
}

func (s *BlockSpec) add(before Text, beside []Part) Edit {
	i, err := s.Where.find(before)
	if err != nil {
		return Edit{Err: err}
	}
	i = s.inOrder(before, i, beside)
	begin, end := s.marks()
	texts := slices.Concat([]string{begin}, s.content(), []string{end})

	return Edit{After: before.insert(i, texts...), Change: model.Change{Action: actionEdit, Message: "Would have added the block", Property: "content"}}
}

// inOrder moves the position of a new block before or after the adjacent blocks that are added at the same
// place.
func (s *BlockSpec) inOrder(t Text, i int, beside []Part) int {
	marked := s.markedBeside(beside)
	adjacent := func(at int) (extent, int) {
		if at < 0 || at >= len(t.lines) {
			return extent{}, 0
		}
		other := marked[t.at(at)]
		if other == nil || other.Where != s.Where {
			return extent{}, 0
		}
		e, _, err := other.find(t)
		if err != nil {
			return extent{}, 0
		}
		return e, compare(other, s)
	}
	from := i
	for {
		e, order := adjacent(i - 1)
		if order <= 0 {
			break
		}
		i = e.begin
	}
	for i == from {
		e, order := adjacent(i)
		if order >= 0 {
			break
		}
		i, from = e.end, e.end
	}

	return i
}

// compare orders blocks by order, then by name.
func compare(a, b *BlockSpec) int {
	return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.Name, b.Name))
}

func (s *BlockSpec) order() int {
	if s.Order == nil {
		return defaultOrder
	}

	return *s.Order
}
