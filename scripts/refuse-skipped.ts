import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

/**
 * A second reporter for `node --test`. Makes the run fail if a test was skipped or is "todo", or if a test file
 * contains no test.
 */
export default async function* refuseSkipped(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:pass') continue;
    const { name, file = '', skip, todo } = event.data;
    const reason =
      skip !== undefined || todo !== undefined
        ? `"${name}" in ${file} did not run: no test may be skipped`
        : // Node reports a test file without tests as one passed test with the file's name.
          resolve(name) === file && `${file} contains no test`;
    if (reason === false) continue;
    process.exitCode = 1;
    yield `${reason}\n`;
  }
}
