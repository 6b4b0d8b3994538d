package simulate

import "strings"

// hostileText must appear as text on a page, have no effect on a terminal, and stay in one cell of a table.
const hostileText = `<script>alert(1)</script><img src=x onerror=alert(2)> "'` + "`\x1b[2J\x1b]0;title\x07\u202etxt.exe\u0000\t| {{7*7}} ${7*7} %s $(id) ' OR 1=1 --"

// hostileLine is a very long line.
func hostileLine(size int) string {
	return strings.Repeat(hostileText, size/len(hostileText)+1)[:size]
}
