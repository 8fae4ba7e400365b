package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	muster "github.com/muster-hpc/muster"
)

// readStatus lists the installed packages of a dpkg status file, sorted.
func readStatus(in io.Reader) ([]muster.ImagePackage, error) {
	var out []muster.ImagePackage
	var p muster.ImagePackage
	var status string
	end := func() error {
		defer func() { p, status = muster.ImagePackage{}, "" }()
		if p.Name == "" {
			if status != "" {
				return errors.New("a paragraph of the dpkg status has no package")
			}
			return nil
		}
		// "install ok installed": wanted, no error, state.
		if f := strings.Fields(status); len(f) != 3 || f[2] != "installed" {
			return nil
		}
		if p.Version == "" || p.Architecture == "" {
			return fmt.Errorf("package %s has no version or architecture in the dpkg status", clip(p.Name))
		}
		out = append(out, p)
		return nil
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if err := end(); err != nil {
				return nil, err
			}
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			continue // continues a field that is not wanted here
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Architecture = value
		case "Status":
			status = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if err := end(); err != nil {
		return nil, err
	}
	slices.SortFunc(out, comparePackages)
	return out, nil
}

// upstream strips epoch and Debian revision: 24.11.5-4 is 24.11.5.
func upstream(version string) string {
	if _, v, ok := strings.Cut(version, ":"); ok {
		version = v
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		version = version[:i]
	}
	return version
}

// versionOf returns the version of an installed package, or "".
func versionOf(packages []muster.ImagePackage, name string) string {
	for _, p := range packages {
		if p.Name == name {
			return p.Version
		}
	}
	return ""
}
