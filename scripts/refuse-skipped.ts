import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

/** A second reporter for `node --test`: skipped and "todo" tests, and test files without a test, make the run fail. */
export default async function* refuseSkipped(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:pass') continue;
    const { name, file = '', skip, todo } = event.data;
    const reason =
      skip !== undefined || todo !== undefined
        ? `"${name}" in ${file} did not run: no test may be skipped`
        : // Node reports a file without tests as one passed test with the name of the file.
          resolve(name) === file && `${file} holds no test`;
    if (reason === false) continue;
    process.exitCode = 1;
    yield `${reason}\n`;
  }
}
