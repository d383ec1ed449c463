/** Loaded into the process of the unit tests: a test that starts a program fails. */
import childProcess, { ChildProcess } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const refuse = (program: string | { readonly file: string }): never => {
  const name = typeof program === 'string' ? program : program.file;
  throw new Error(
    `a unit test cannot start a program, here ${name}; put "// Not a unit test: it starts ${name}." into the test file`,
  );
};

// All asynchronous functions use this method, which the types of Node leave out.
Object.assign(ChildProcess.prototype, { spawn: refuse });
Object.assign(childProcess, { spawnSync: refuse, execSync: refuse, execFileSync: refuse });
syncBuiltinESMExports();
