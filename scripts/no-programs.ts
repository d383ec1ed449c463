/** Preloaded into the unit test process. Makes a test fail if it starts a program. */
import childProcess, { ChildProcess } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const refuse = (program: string | { readonly file: string }): never => {
  const name = typeof program === 'string' ? program : program.file;
  throw new Error(
    `a unit test cannot start a program, here ${name}; put "// Not a unit test: it starts ${name}." into the test file`,
  );
};

// All asynchronous functions use this method, which Node's types omit.
Object.assign(ChildProcess.prototype, { spawn: refuse });
Object.assign(childProcess, { spawnSync: refuse, execSync: refuse, execFileSync: refuse });
syncBuiltinESMExports();
