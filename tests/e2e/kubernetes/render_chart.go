// Renders a Helm chart for a test where Helm itself is not packaged: the same template language (text/template with the
// functions of sprig) and the objects and functions that our chart uses. render_chart CHART [VALUES]
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type files struct{ root string }

func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(f.root, name))
	check(err)
	return string(text)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readYAML(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	check(err)
	values := map[string]interface{}{}
	check(yaml.Unmarshal(text, &values))
	return values
}

func merge(into, from map[string]interface{}) {
	for key, value := range from {
		below, isMap := value.(map[string]interface{})
		present, wasMap := into[key].(map[string]interface{})
		if isMap && wasMap && len(below) > 0 {
			merge(present, below)
		} else {
			into[key] = value
		}
	}
}

func main() {
	chart := os.Args[1]
	values := readYAML(filepath.Join(chart, "values.yaml"))
	if len(os.Args) > 2 {
		merge(values, readYAML(os.Args[2]))
	}
	about := readYAML(filepath.Join(chart, "Chart.yaml"))
	data := map[string]interface{}{
		"Values":  values,
		"Chart":   map[string]interface{}{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release": map[string]interface{}{"Name": "node", "Service": "Helm", "Namespace": "rooflined"},
		"Files":   files{chart},
	}
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		_, err = all.New(filepath.Base(path)).Parse(string(text))
		check(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".tpl") {
			continue
		}
		var out bytes.Buffer
		check(all.ExecuteTemplate(&out, filepath.Base(path), data))
		fmt.Printf("---\n%s\n", out.String())
	}
}
