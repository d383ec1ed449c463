import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

/**
 * A reporter for `node --test` beside the one that is read: a test that is skipped or "todo", or a test file
 * without a single test, makes the whole run fail.
 */
export default async function* refuseSkipped(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:pass') continue;
    const { name, file = '', skip, todo } = event.data;
    const fault =
      skip !== undefined || todo !== undefined
        ? `"${name}" in ${file} did not run: no test may be skipped`
        : // Node passes a file that declares no test as one test, named by the path.
          resolve(name) === file && `${file} holds no test`;
    if (fault === false) continue;
    process.exitCode = 1;
    yield `${fault}\n`;
  }
}
