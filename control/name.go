package control

func lower(r byte) bool { return r >= 'a' && r <= 'z' }
func digit(r byte) bool { return r >= '0' && r <= '9' }

func isProjectName(name string) bool {
	if name == "" || len(name) > 63 || (!lower(name[0]) && !digit(name[0])) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !lower(c) && !digit(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
