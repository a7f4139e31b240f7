package experiment

// The shape of an experiment file. These types are what the decoder reads into
// (decode.go), what the editor schema is generated from (schema.go) and what the
// table in docs/experiment-file.md is made of: a key exists by being here.

type document struct {
	Question  text             `json:"question,omitempty" jsonschema:"what is to be found out, in words"`
	Service   *serviceDoc      `json:"service,omitempty" jsonschema:"the program to measure"`
	Services  dict[serviceDoc] `json:"services,omitempty" jsonschema:"several programs that are measured as one, by name"`
	Sockets   dict[text]       `json:"sockets,omitempty" jsonschema:"addresses leased by hakaru: name: tcp or unix or a {placeholder}"`
	Params    dict[text]       `json:"params,omitempty" jsonschema:"fixed texts for placeholders"`
	Base      settings         `json:"base,omitempty" jsonschema:"settings of every variant"`
	Variants  dict[variantDoc] `json:"variants,omitempty" jsonschema:"variants written out: name: {setting: value}"`
	Factors   dict[levels]     `json:"factors,omitempty" jsonschema:"settings with their levels, which are crossed"`
	At        dict[levels]     `json:"at,omitempty" jsonschema:"levels of the load; comparisons are made within each"`
	Baseline  baselineDoc      `json:"baseline,omitempty" jsonschema:"the variant that others are compared with; the first where it is not given"`
	Compare   texts            `json:"compare,omitempty" jsonschema:"baseline (the default), previous, or both"`
	Load      *loadDoc         `json:"load,omitempty" jsonschema:"what is sent"`
	Goal      text             `json:"goal,omitempty" jsonschema:"the metric that decides; throughput where it is not given"`
	Limits    dict[text]       `json:"limits,omitempty" jsonschema:"bounds that must hold: metric: bound"`
	Prove     dict[proofs]     `json:"prove,omitempty" jsonschema:"how to see that a setting is in force"`
	ActsAfter dict[duration]   `json:"acts_after,omitempty" jsonschema:"time a setting needs until it can show"`
	Where     texts            `json:"where,omitempty" jsonschema:"conditions that a variant must hold, such as processes * threads <= 64"`
	Design    *designDoc       `json:"design,omitempty" jsonschema:"how much to measure"`
	Hosts     *hostsDoc        `json:"hosts,omitempty" jsonschema:"where the service and the load run"`
	Allow     texts            `json:"allow,omitempty" jsonschema:"what hakaru may change outside"`
	Capture   anything         `json:"capture,omitempty" jsonschema:"queries to record (not built yet)"`
	Price     *priceDoc        `json:"price,omitempty" jsonschema:"prices of machines (not built yet)"`
}

type serviceDoc struct {
	Kind     text       `json:"kind,omitempty" jsonschema:"what kind of program: serve, command; guessed from run where it is not given"`
	Run      words      `json:"run,omitempty" jsonschema:"the command, split into words as a shell would, without a shell"`
	Dir      text       `json:"dir,omitempty" jsonschema:"where it runs; the directory of the file where it is not given"`
	Env      settings   `json:"env,omitempty" jsonschema:"environment variables; null removes one"`
	Settings text       `json:"settings,omitempty" jsonschema:"the config file; a copy is edited for each variant"`
	Files    dict[text] `json:"files,omitempty" jsonschema:"further files to write: path: content"`
	Ports    texts      `json:"ports,omitempty" jsonschema:"names of ports leased by hakaru: {name} is 127.0.0.1:PORT"`
	Base     settings   `json:"base,omitempty" jsonschema:"settings of this service in every variant"`
	Ready    *readyDoc  `json:"ready,omitempty" jsonschema:"the right first answer"`
	Stop     stopDoc    `json:"stop,omitempty" jsonschema:"how it is asked to end: a signal, or {signal, grace}"`
	User     text       `json:"user,omitempty" jsonschema:"who it runs as"`
	After    texts      `json:"after,omitempty" jsonschema:"services that are started before it"`
	Only     dict[text] `json:"only,omitempty" jsonschema:"factor: level; it is there in such variants only"`
	Attach   *readyDoc  `json:"attach,omitempty" jsonschema:"a service that hakaru does not start (not built yet)"`
	Apply    text       `json:"apply,omitempty" jsonschema:"command that brings {file} into place (not built yet)"`
	Restart  text       `json:"restart,omitempty" jsonschema:"command that restarts it (not built yet)"`
	Undo     text       `json:"undo,omitempty" jsonschema:"command that puts everything back (not built yet)"`
	Build    text       `json:"build,omitempty" jsonschema:"command that builds it (not built yet)"`
	Data     *dataDoc   `json:"data,omitempty" jsonschema:"its data directory (not built yet)"`
}

type readyDoc struct {
	Get     text     `json:"get,omitempty" jsonschema:"URL to ask"`
	Status  number   `json:"status,omitempty" jsonschema:"the status of the right answer; any 2xx where it is not given"`
	Body    text     `json:"body,omitempty" jsonschema:"the answer contains it"`
	Connect text     `json:"connect,omitempty" jsonschema:"address that accepts a connection"`
	Log     text     `json:"log,omitempty" jsonschema:"the output contains it"`
	Timeout duration `json:"timeout,omitempty" jsonschema:"how long to wait; 30s where it is not given"`
}

type dataDoc struct {
	Prepare   text `json:"prepare,omitempty" jsonschema:"command that fills it"`
	EachTrial text `json:"each_trial,omitempty" jsonschema:"copy or keep"`
}

type httpDoc struct {
	URL         text       `json:"url,omitempty" jsonschema:"what is asked for"`
	Method      text       `json:"method,omitempty" jsonschema:"GET where it is not given"`
	Headers     dict[text] `json:"headers,omitempty" jsonschema:"request headers"`
	Body        text       `json:"body,omitempty" jsonschema:"request body"`
	Connections text       `json:"connections,omitempty" jsonschema:"requests at once; 64 where it is not given"`
	WarmUp      text       `json:"warm_up,omitempty" jsonschema:"load before the measured window; 1s where it is not given"`
	Duration    text       `json:"duration,omitempty" jsonschema:"the measured window; 10s where it is not given"`
	Timeout     text       `json:"timeout,omitempty" jsonschema:"of one request; 10s where it is not given"`
	Status      text       `json:"status,omitempty" jsonschema:"the expected status; any 2xx where it is not given"`
	Expect      text       `json:"expect,omitempty" jsonschema:"the answer's body contains it"`
	KeepAlive   text       `json:"keep_alive,omitempty" jsonschema:"true (the default) or false"`
}

type designDoc struct {
	Method    text     `json:"method,omitempty" jsonschema:"compare, one-at-a-time, factorial; race, search, switchback, auto are not built yet"`
	Blocks    number   `json:"blocks,omitempty" jsonschema:"at most so many blocks in a stratum; 28 where it is not given"`
	Budget    duration `json:"budget,omitempty" jsonschema:"time for the whole run"`
	Matters   share    `json:"matters,omitempty" jsonschema:"the smallest difference that matters; 3% where it is not given"`
	Seed      number   `json:"seed,omitempty" jsonschema:"of the order of trials; made from the file where it is not given"`
	Calibrate number   `json:"calibrate,omitempty" jsonschema:"trials of the baseline before the first block; 6 where it is not given"`
}

type hostsDoc struct {
	Service hostDoc `json:"service,omitempty" jsonschema:"where the service runs"`
	Load    hostDoc `json:"load,omitempty" jsonschema:"where the load comes from"`
}

type priceDoc struct {
	Table    text       `json:"table,omitempty" jsonschema:"file of prices"`
	Terms    texts      `json:"terms,omitempty" jsonschema:"terms of payment"`
	Instance dict[text] `json:"instance,omitempty" jsonschema:"host: type of machine"`
}
