// Not a unit test: it lists 100,000 pages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ListPage,
  listAll,
  listPages,
  responseMeter,
  withListBounds,
} from '../../src/http/list-pages.ts';

const SUBJECT = { subject: 'provider cloud: list' };

/** Yields numbered pages of one entry each. */
function pagesOf(count: number): (marker: string | undefined) => Promise<ListPage<number>> {
  return async (marker = '1') => {
    const number = Number(marker);
    return { entries: [number], next: number < count ? String(number + 1) : undefined };
  };
}

/** Counts a response of 80 bytes. */
function receive(): void {
  const meter = responseMeter('provider cloud: list');
  for (const bytes of [40, 40]) meter.add(bytes);
}

test('a list of 100,000 images is complete, even if each page has one of them', async () => {
  const found = await listAll(SUBJECT, pagesOf(100_000));
  assert.equal(found.length, 100_000);
  assert.equal(found.at(-1), 100_000);
});

test('a paged list ends at an empty text or null in place of a marker', async () => {
  for (const next of ['', null]) {
    assert.deepEqual(await listAll(SUBJECT, async () => ({ entries: ['a'], next })), ['a']);
  }
});

test('a paged list fails at the second page with the same marker', async () => {
  let requests = 0;
  const list = listAll(SUBJECT, async () => {
    requests += 1;
    return { entries: [], next: 'same' };
  });
  await assert.rejects(list, {
    code: 'endless-list',
    message:
      'provider cloud: list: the list does not end: page 2 repeats the marker of an earlier one; ' +
      'ask the operator of the service, or of a proxy before it',
  });
  assert.equal(requests, 2);
});

test('a paged list that exceeds a bound fails with an error that names the bound', async () => {
  const bounds = { pages: 3, entries: 3, time: -1 };
  const messages = { pages: /more than 3 pages/, entries: /more than 3 entries/, time: /longer than -1 s/ };
  for (const [name, message] of Object.entries(messages)) {
    const only = { [name]: bounds[name as keyof typeof bounds] };
    const list = withListBounds(only, () => listAll(SUBJECT, pagesOf(1000)));
    await assert.rejects(list, { code: 'endless-list', message });
  }
});

test('a caller that needs no further page of a list requests none', async () => {
  const requested: (string | undefined)[] = [];
  for await (const page of listPages(SUBJECT, async (marker) => {
    requested.push(marker);
    return await pagesOf(10)(marker);
  })) {
    if (page[0] === 2) break;
  }
  assert.deepEqual(requested, [undefined, '2']);
});

test('one list’s responses count together towards its bound, and other responses count alone', async () => {
  const request = async (marker: string | undefined): Promise<ListPage<number>> => {
    receive();
    return await pagesOf(3)(marker);
  };
  await withListBounds({ bytes: 200 }, async () => {
    await assert.rejects(listAll(SUBJECT, request), {
      code: 'response-too-large',
      message: /: the list is longer than 200 bytes; /,
    });
    for (let response = 0; response < 3; response += 1) receive();
  });
  await withListBounds({ responseBytes: 50 }, async () => {
    await assert.rejects(listAll(SUBJECT, request), /: the response is longer than 50 bytes; /);
  });
});
