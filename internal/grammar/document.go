// Package grammar is the shape of an experiment file: which keys there are and
// what each may hold (document.go), how a tree of YAML is read into that shape
// (decode.go), and what editors are told of it (schema.go).
//
// It notes every key that is unknown and every value of the wrong form. What the
// parts mean together (names that must be declared, settings that nothing uses,
// variants, strata) is for internal/experiment.
package grammar

// Document is an experiment file. It and the types of its fields are what the
// decoder reads into, what the editor schema is generated from and what the table
// in docs/experiment-file.md is made of: a key exists by being here, as a field
// with a json tag.
type Document struct {
	Question  Text           `json:"question,omitempty" jsonschema:"what is to be found out, in words"`
	Service   *Service       `json:"service,omitempty" jsonschema:"the program to measure"`
	Services  Dict[Service]  `json:"services,omitempty" jsonschema:"several programs that are measured as one, by name"`
	Sockets   Dict[Text]     `json:"sockets,omitempty" jsonschema:"addresses leased by hakaru: name: tcp or unix or a {placeholder}"`
	Params    Dict[Text]     `json:"params,omitempty" jsonschema:"fixed texts for placeholders"`
	Base      Settings       `json:"base,omitempty" jsonschema:"settings of every variant"`
	Variants  Dict[Variant]  `json:"variants,omitempty" jsonschema:"variants written out: name: {setting: value}"`
	Factors   Dict[Levels]   `json:"factors,omitempty" jsonschema:"settings with their levels, which are crossed"`
	At        Dict[Levels]   `json:"at,omitempty" jsonschema:"levels of the load; comparisons are made within each"`
	Baseline  Baseline       `json:"baseline,omitempty" jsonschema:"the variant that others are compared with; the first where it is not given"`
	Compare   Texts          `json:"compare,omitempty" jsonschema:"baseline (the default), previous, or both"`
	Load      *Load          `json:"load,omitempty" jsonschema:"what is sent"`
	Goal      Text           `json:"goal,omitempty" jsonschema:"the metric that decides; throughput where it is not given"`
	Limits    Dict[Text]     `json:"limits,omitempty" jsonschema:"bounds that must hold: metric: bound"`
	Prove     Dict[Proofs]   `json:"prove,omitempty" jsonschema:"how to see that a setting is in force"`
	ActsAfter Dict[Duration] `json:"acts_after,omitempty" jsonschema:"time a setting needs until it can show"`
	Where     Texts          `json:"where,omitempty" jsonschema:"conditions that a variant must hold, such as processes * threads <= 64"`
	Design    *Design        `json:"design,omitempty" jsonschema:"how much to measure"`
	Hosts     *Hosts         `json:"hosts,omitempty" jsonschema:"where the service and the load run"`
	Allow     Texts          `json:"allow,omitempty" jsonschema:"what hakaru may change outside (not built yet)"`
	Capture   Anything       `json:"capture,omitempty" jsonschema:"queries to record (not built yet)"`
	Price     *Price         `json:"price,omitempty" jsonschema:"prices of machines (not built yet)"`
}

// Service is one program, under service or services.
type Service struct {
	Kind     Text       `json:"kind,omitempty" jsonschema:"the program that it is, one that hakaru knows (docs/kinds.md), or command; guessed from run where it is not given"`
	Run      Words      `json:"run,omitempty" jsonschema:"the command, split into words as a shell would, without a shell"`
	Dir      Text       `json:"dir,omitempty" jsonschema:"where it runs; the directory of the file where it is not given"`
	Env      Settings   `json:"env,omitempty" jsonschema:"environment variables; null removes one"`
	Settings Text       `json:"settings,omitempty" jsonschema:"the config file; a copy is edited for each variant"`
	Files    Dict[Text] `json:"files,omitempty" jsonschema:"further files to write: path: content"`
	Ports    Texts      `json:"ports,omitempty" jsonschema:"names of ports leased by hakaru: {name} is 127.0.0.1:PORT"`
	Base     Settings   `json:"base,omitempty" jsonschema:"settings of this service in every variant"`
	Ready    *Ready     `json:"ready,omitempty" jsonschema:"the right first answer"`
	Stop     Stop       `json:"stop,omitempty" jsonschema:"how it is asked to end: a signal, or {signal, grace}"`
	User     Text       `json:"user,omitempty" jsonschema:"who it runs as"`
	After    Texts      `json:"after,omitempty" jsonschema:"services that are started before it"`
	Only     Dict[Text] `json:"only,omitempty" jsonschema:"factor: level; it is there in such variants only"`
	Attach   *Attach    `json:"attach,omitempty" jsonschema:"the right answer of a service that something else starts"`
	Apply    Text       `json:"apply,omitempty" jsonschema:"command that brings {file}, the edited copy, into place"`
	Restart  Text       `json:"restart,omitempty" jsonschema:"command that makes it count"`
	Undo     Text       `json:"undo,omitempty" jsonschema:"command that puts everything back; run whatever happens"`
	Build    Text       `json:"build,omitempty" jsonschema:"command that builds it, once for each version"`
	SQL      Text       `json:"sql,omitempty" jsonschema:"where proofs by SQL are asked: user:password@tcp(host:port)/ or user@unix(/path)/"`
	Data     *Data      `json:"data,omitempty" jsonschema:"its data directory (not built yet)"`
}

// Ready is the right first answer.
type Ready struct {
	Get     Text     `json:"get,omitempty" jsonschema:"URL to ask"`
	Status  Number   `json:"status,omitempty" jsonschema:"the status of the right answer; any 2xx where it is not given"`
	Body    Text     `json:"body,omitempty" jsonschema:"the answer contains it"`
	Connect Text     `json:"connect,omitempty" jsonschema:"address that accepts a connection"`
	Log     Text     `json:"log,omitempty" jsonschema:"the output contains it"`
	Timeout Duration `json:"timeout,omitempty" jsonschema:"how long to wait; 30s where it is not given"`
}

// Attach is the right answer of a service that something else starts, whose output
// hakaru does not see.
type Attach struct {
	Get     Text     `json:"get,omitempty" jsonschema:"URL to ask"`
	Status  Number   `json:"status,omitempty" jsonschema:"the status of the right answer; any 2xx where it is not given"`
	Body    Text     `json:"body,omitempty" jsonschema:"the answer contains it"`
	Connect Text     `json:"connect,omitempty" jsonschema:"address that accepts a connection"`
	Timeout Duration `json:"timeout,omitempty" jsonschema:"how long each of the commands may take, and the right answer after them; 1m where it is not given"`
}

// Data is a service's data directory.
type Data struct {
	Prepare   Text `json:"prepare,omitempty" jsonschema:"command that fills it"`
	EachTrial Text `json:"each_trial,omitempty" jsonschema:"copy or keep"`
}

// HTTP is load over HTTP.
type HTTP struct {
	URL         Text       `json:"url,omitempty" jsonschema:"what is asked for"`
	Method      Text       `json:"method,omitempty" jsonschema:"GET where it is not given"`
	Headers     Dict[Text] `json:"headers,omitempty" jsonschema:"request headers"`
	Body        Text       `json:"body,omitempty" jsonschema:"request body"`
	Connections Text       `json:"connections,omitempty" jsonschema:"requests at once; 64 where it is not given"`
	WarmUp      Text       `json:"warm_up,omitempty" jsonschema:"load before the measured window, to the next half second; 1s where it is not given"`
	Duration    Text       `json:"duration,omitempty" jsonschema:"the measured window, to the next half second; 10s where it is not given"`
	Timeout     Text       `json:"timeout,omitempty" jsonschema:"of one request; 10s where it is not given"`
	Status      Text       `json:"status,omitempty" jsonschema:"the expected status; any 2xx where it is not given"`
	Expect      Text       `json:"expect,omitempty" jsonschema:"the answer's body contains it"`
	KeepAlive   Text       `json:"keep_alive,omitempty" jsonschema:"true (the default) or false"`
	Rate        Text       `json:"rate,omitempty" jsonschema:"2000/s: an open loop at that rate; 70%: an open loop after the closed one, at this share of the baseline's capacity, by which latency is judged (70% where a latency is the goal or has a limit)"`
	Arrival     Text       `json:"arrival,omitempty" jsonschema:"when the requests of the open loop are due: constant (evenly, the default) or poisson (independently of each other)"`
	Threads     Text       `json:"threads,omitempty" jsonschema:"threads that send; as many as connections and CPUs are good for where it is not given"`
	Precise     Text       `json:"precise,omitempty" jsonschema:"true: the last 50 µs before a request of the open loop is due are waited for on the CPU; false where it is not given"`
	HTTPVersion Text       `json:"http_version,omitempty" jsonschema:"1.1 (the default) or 1.0"`
	ConnectTo   Text       `json:"connect_to,omitempty" jsonschema:"HOST:PORT or unix:PATH to connect to instead of what the URL names"`
	Family      Text       `json:"family,omitempty" jsonschema:"4 or 6: only addresses of this family; both where it is not given"`
	Sources     Texts      `json:"sources,omitempty" jsonschema:"local addresses to connect from, in turn"`
	Insecure    Text       `json:"insecure,omitempty" jsonschema:"https: true: any certificate is good; false where it is not given"`
	ServerName  Text       `json:"server_name,omitempty" jsonschema:"https: the name that is sent (SNI) and that the certificate is to be of; the URL's host where it is not given"`
	CA          Text       `json:"ca,omitempty" jsonschema:"https: PEM file of those whose signatures count; the system's where it is not given"`
	Cert        Text       `json:"cert,omitempty" jsonschema:"https: PEM file of the certificate that is shown to the service"`
	Key         Text       `json:"key,omitempty" jsonschema:"https: PEM file of its key"`
	Engine      Text       `json:"engine,omitempty" jsonschema:"epoll or goroutines; the one that fits where it is not given"`
}

// Design says how much to measure.
type Design struct {
	Method    Text     `json:"method,omitempty" jsonschema:"compare, one-at-a-time, factorial; race, search, switchback, auto are not built yet"`
	Blocks    Number   `json:"blocks,omitempty" jsonschema:"at most so many blocks in a stratum; 28 where it is not given"`
	Budget    Duration `json:"budget,omitempty" jsonschema:"time for the whole run"`
	Matters   Share    `json:"matters,omitempty" jsonschema:"the smallest difference that matters; 3% where it is not given"`
	Seed      Number   `json:"seed,omitempty" jsonschema:"of the order of trials; made from the file where it is not given"`
	Calibrate Number   `json:"calibrate,omitempty" jsonschema:"trials of the baseline before the first block; 6 where it is not given"`
}

// Hosts says where the two sides of a trial run.
type Hosts struct {
	Service Host `json:"service,omitempty" jsonschema:"where the service runs"`
	Load    Host `json:"load,omitempty" jsonschema:"where the load comes from"`
}

// Price is understood only.
type Price struct {
	Table    Text       `json:"table,omitempty" jsonschema:"file of prices"`
	Terms    Texts      `json:"terms,omitempty" jsonschema:"terms of payment"`
	Instance Dict[Text] `json:"instance,omitempty" jsonschema:"host: type of machine"`
}
