package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Kafka43 and the others name sets of libraries for Maven: a folder's name and what it holds with all dependencies
// (group:artifact:version[:classifier]).
var (
	Kafka43 = Libs{"kafka-4.3.1", []string{
		"org.apache.kafka:kafka_2.13:4.3.1", "org.apache.kafka:kafka-tools:4.3.1", "org.apache.kafka:kafka-shell:4.3.1", "org.apache.kafka:kafka-streams:4.3.1",
		"org.apache.kafka:connect-runtime:4.3.1", "org.apache.kafka:connect-json:4.3.1", "org.apache.kafka:connect-file:4.3.1", "org.apache.kafka:connect-mirror:4.3.1",
		"org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"}} // without this binding neither broker nor clients log a line
	Kafka28 = Libs{"kafka-2.8.2", []string{"org.apache.kafka:kafka_2.13:2.8.2", "org.slf4j:slf4j-reload4j:1.7.36"}} // the last with --zookeeper
	Kafka39 = Libs{"kafka-3.9.2", []string{"org.apache.kafka:kafka_2.13:3.9.2", "org.apache.kafka:kafka-tools:3.9.2", "org.slf4j:slf4j-reload4j:1.7.36"}}
)

// Libs is a set of Java libraries from Maven's registry.
type Libs struct {
	Name      string
	Artifacts []string
}

var javaLibs struct {
	sync.Mutex
	had map[string]string
}

// NeedJava finds the libraries' folder in the cache or fills it, and returns it.
func NeedJava(cache string, l Libs) (string, error) {
	javaLibs.Lock()
	defer javaLibs.Unlock()
	if dir, ok := javaLibs.had[l.Name]; ok {
		return dir, nil
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", Skip{"java is not installed"}
	}
	dir := filepath.Join(cache, "java", l.Name)
	want := strings.Join(l.Artifacts, "\n") + "\n"
	if got, err := os.ReadFile(filepath.Join(dir, "artifacts")); err != nil || string(got) != want {
		if err := resolve(dir, l.Artifacts); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "artifacts"), []byte(want), 0o644); err != nil {
			return "", err
		}
	}
	if javaLibs.had == nil {
		javaLibs.had = map[string]string{}
	}
	javaLibs.had[l.Name] = dir
	return dir, nil
}

// resolve has Maven copy the artifacts and what they depend on into dir.
func resolve(dir string, artifacts []string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return Skip{"mvn is not installed"}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>libs</artifactId><version>1</version><packaging>pom</packaging><dependencies>`)
	for _, a := range artifacts {
		p := strings.Split(a, ":")
		if len(p) < 3 {
			return fmt.Errorf("artifact %q is not group:artifact:version", a)
		}
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>", p[0], p[1], p[2])
		if len(p) > 3 {
			fmt.Fprintf(&b, "<classifier>%s</classifier>", p[3])
		}
		b.WriteString("</dependency>\n")
	}
	b.WriteString("</dependencies></project>\n")
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, []byte(b.String()), 0o644); err != nil {
		return err
	}
	out, err := exec.Command(mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+dir, "-DincludeScope=runtime").CombinedOutput()
	if err != nil {
		return Skip{fmt.Sprintf("mvn could not get %s: %v: %s", strings.Join(artifacts, " "), err, firstLine(out))}
	}
	return nil
}

// Java makes a command for a class (or a source file) with the folder's libraries, a small heap and quiet logs on standard error.
// classPath may name further folders of jars, classes or jars, which come first.
func (e *Env) Java(libs string, heap string, classPath []string, classAndArgs ...string) (*exec.Cmd, error) {
	log2, log1, err := e.logConfigs()
	if err != nil {
		return nil, err
	}
	cp := strings.Join(append(append([]string{}, classPath...), filepath.Join(libs, "*")), string(os.PathListSeparator))
	args := []string{"-Xmx" + heap, "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + e.Dir, "-Dlog4j2.configurationFile=file:" + log2, "-Dlog4j.configuration=file:" + log1, "-cp", cp}
	return e.Command("java", append(args, classAndArgs...)...), nil
}

// logConfigs writes the two generations of log4j's configuration into the check's folder.
func (e *Env) logConfigs() (log2, log1 string, err error) {
	log2, log1 = filepath.Join(e.Dir, "log4j2.properties"), filepath.Join(e.Dir, "log4j.properties")
	err = os.WriteFile(log2, []byte(`status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.err.ref = err
`), 0o644)
	if err != nil {
		return "", "", err
	}
	return log2, log1, os.WriteFile(log1, []byte(`log4j.rootLogger=WARN, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=[%d] %p %m (%c)%n
`), 0o644)
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
