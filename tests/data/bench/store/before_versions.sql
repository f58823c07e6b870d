BEGIN TRANSACTION;
CREATE TABLE hpcvirt_results (
	id VARCHAR(64) NOT NULL, 
	"plan" VARCHAR(64) NOT NULL, 
	started_at VARCHAR(40) NOT NULL, 
	finished_at VARCHAR(40), 
	software TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "hpcvirt_results" VALUES('20261120a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','2026-11-20T10:00:00+00:00','2026-11-20T10:05:00+00:00','{"hpcvirt": "1.0", "python": "3.11.7"}');
INSERT INTO "hpcvirt_results" VALUES('20261121b','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','2026-11-21T10:00:00+00:00',NULL,'{"hpcvirt": "1.0"}');
CREATE TABLE hpcvirt_runs (
	id VARCHAR(64) NOT NULL, 
	result_id VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	benchmark VARCHAR(64) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(result_id) REFERENCES hpcvirt_results (id)
);
INSERT INTO "hpcvirt_runs" VALUES('20261120a-0','20261120a',0,'npb-cg','n17','{"id": "20261120a-0", "benchmark": "npb-cg", "variant": "mpi", "samples": [], "parameters": {"class": "C"}, "host": "n17", "shape": "1x8", "purpose": "compare", "planned_pairs": 5, "planned_warm_ups": 1, "bounds": {"wall_s": {"ratio": 1.03, "margin": 0.0, "source": "[SDSC-SRIOV-2013], table"}}, "launch": null, "of_launch": false, "study": null, "case": null, "started_at": "2026-11-20T10:00:00+00:00"}');
INSERT INTO "hpcvirt_runs" VALUES('20261120a-1','20261120a',1,'stream','n17','{"id": "20261120a-1", "benchmark": "stream", "variant": "openmp", "samples": [], "parameters": {}, "host": "n17", "shape": "", "purpose": "unpaired", "planned_pairs": 10, "planned_warm_ups": 1, "bounds": {}, "launch": null, "of_launch": false, "study": "S1", "case": "x", "started_at": ""}');
INSERT INTO "hpcvirt_runs" VALUES('20261121b-0','20261121b',0,'npb-cg','n17','{"id": "20261121b-0", "benchmark": "npb-cg", "variant": "mpi", "samples": [], "parameters": {"class": "C"}, "host": "n17", "shape": "1x8", "purpose": "compare", "planned_pairs": 5, "planned_warm_ups": 1, "bounds": {"wall_s": {"ratio": 1.03, "margin": 0.0, "source": "[SDSC-SRIOV-2013], table"}}, "launch": null, "of_launch": false, "study": null, "case": null, "started_at": "2026-11-20T10:00:00+00:00"}');
CREATE TABLE hpcvirt_samples (
	run_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (run_id, position), 
	FOREIGN KEY(run_id) REFERENCES hpcvirt_runs (id)
);
INSERT INTO "hpcvirt_samples" VALUES('20261120a-0',0,'{"arm": "native", "pair": 0, "position": 0, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.5, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": true, "launch": null, "launch_id": "", "started_at": "2026-11-20T10:00:00+00:00", "elapsed_s": 3.0, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261120a-0/0000/stdout", "sha256": "686513ed91231892fbf0c4e72acee20264caa8538e8389157a942a808dba6531", "size_bytes": 4}]}');
INSERT INTO "hpcvirt_samples" VALUES('20261120a-0',1,'{"arm": "native", "pair": 0, "position": 1, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.0, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": false, "launch": null, "launch_id": "", "started_at": "2026-11-20T10:00:01+00:00", "elapsed_s": 2.5, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261120a-0/0001/stdout", "sha256": "d526eb4e878a23ef26ae190031b4efd2d58ed66789ac049ea3dbaf74c9df7402", "size_bytes": 4}]}');
INSERT INTO "hpcvirt_samples" VALUES('20261120a-0',2,'{"arm": "guest", "pair": 0, "position": 2, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.05, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": false, "launch": "warm", "launch_id": "7", "started_at": "2026-11-20T10:00:02+00:00", "elapsed_s": 2.55, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261120a-0/0002/stdout", "sha256": "75f95d34c899a792823b9bf9b0d516bb4b8ecf7b9d02db2e41e63220feb1ab19", "size_bytes": 5}]}');
INSERT INTO "hpcvirt_samples" VALUES('20261120a-0',3,'{"arm": "guest", "pair": 1, "position": 3, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.04, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": false, "launch": "warm", "launch_id": "7", "started_at": "2026-11-20T10:00:03+00:00", "elapsed_s": 2.54, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261120a-0/0003/stdout", "sha256": "cfbcc24bdb8d268486e65a1dac11b6fea3e07805769d3d15918238a43059ce44", "size_bytes": 5}]}');
INSERT INTO "hpcvirt_samples" VALUES('20261120a-0',4,'{"arm": "native", "pair": 1, "position": 4, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.01, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": false, "launch": null, "launch_id": "", "started_at": "2026-11-20T10:00:04+00:00", "elapsed_s": 2.51, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261120a-0/0004/stdout", "sha256": "4d7d6c70f3f7bd5127794e01ccfc42b1f3dcd882d229ad6c9d274104eb6db6b5", "size_bytes": 5}]}');
INSERT INTO "hpcvirt_samples" VALUES('20261120a-1',0,'{"arm": "native", "pair": 0, "position": 0, "outcome": {"valid": false, "reason": "no table of results", "metrics": {}, "parameters": {}, "remarks": [], "kinds": {}}, "warm_up": false, "launch": null, "launch_id": "", "started_at": "", "elapsed_s": null, "exit_status": null, "command": [], "environment": {}, "outputs": []}');
INSERT INTO "hpcvirt_samples" VALUES('20261121b-0',0,'{"arm": "native", "pair": 0, "position": 0, "outcome": {"valid": true, "reason": null, "metrics": {"wall_s": {"value": 2.5, "unit": "s", "direction": "down"}}, "parameters": {"class": "C", "ranks": "8"}, "remarks": ["a note"], "kinds": {}}, "warm_up": true, "launch": null, "launch_id": "", "started_at": "2026-11-20T10:00:00+00:00", "elapsed_s": 3.0, "exit_status": 0, "command": ["mpirun", "-np", "8", "cg.C.8"], "environment": {"kernel": "6.1.0", "cpu.model": "K\u00f6ln 3000"}, "outputs": [{"name": "stdout", "path": "20261121b-0/0000/stdout", "sha256": "686513ed91231892fbf0c4e72acee20264caa8538e8389157a942a808dba6531", "size_bytes": 4}]}');
CREATE INDEX ix_hpcvirt_results_plan ON hpcvirt_results ("plan");
CREATE INDEX ix_hpcvirt_runs_result_id ON hpcvirt_runs (result_id);
CREATE INDEX ix_hpcvirt_runs_host ON hpcvirt_runs (host);
COMMIT;
