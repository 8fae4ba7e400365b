package spec

import (
	"bytes"
	"mime"
	"path"
	"strings"
)

// Format is a notation of request files.
type Format string

// The formats.
const (
	YAML Format = "yaml"
	JSON Format = "json"
	XML  Format = "xml"
)

// Formats lists every format.
func Formats() []Format { return []Format{YAML, JSON, XML} }

// ContentType is the media type of the format.
func (f Format) ContentType() string { return "application/" + string(f) }

// FormatOf tells the format of a request: by its media type if that names one
// ("application/json; charset=utf-8"), else by the ending of the file name,
// else by the first byte that is not blank: "{" is JSON, "<" is XML, all else
// YAML. Any argument may be empty.
func FormatOf(contentType, filename string, data []byte) Format {
	if t, _, err := mime.ParseMediaType(contentType); err == nil {
		switch t {
		case "application/json", "text/json":
			return JSON
		case "application/xml", "text/xml":
			return XML
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return YAML
		}
	}
	switch strings.ToLower(path.Ext(filename)) {
	case ".json":
		return JSON
	case ".xml":
		return XML
	case ".yaml", ".yml":
		return YAML
	}
	switch rest := bytes.TrimLeft(bytes.TrimPrefix(data, []byte(bom)), " \t\r\n"); {
	case len(rest) > 0 && rest[0] == '{':
		return JSON
	case len(rest) > 0 && rest[0] == '<':
		return XML
	}
	return YAML
}

// bom is the UTF-8 byte order mark, which some editors put first.
const bom = "\xef\xbb\xbf"
