import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { forwardedPort, instanceArguments } from '../../src/qemu/instance-arguments.ts';

const REQUEST = { buildId: 'debian-1', port: 22 };

/** Returns the values of an option, in order. */
function valuesOf(option: string, args: readonly string[]): string[] {
  return args.filter((_, index) => args[index - 1] === option);
}

describe('the arguments of an instance', () => {
  test('QEMU’s arguments contain the memory, accelerator and port of the instance', () => {
    const args = instanceArguments({}, { ...REQUEST, minRam: 4096, port: 5986 }, 'tcg');
    assert.deepEqual(valuesOf('-m', args), ['4096']);
    assert.deepEqual(valuesOf('-m', instanceArguments({}, REQUEST, 'tcg')), ['1024']);
    assert.deepEqual(valuesOf('-accel', args), ['tcg']);
    assert.deepEqual(valuesOf('-netdev', args), ['user,id=net0,hostfwd=tcp:127.0.0.1:0-:5986']);
  });

  test('QEMU’s arguments escape option separators in a name', () => {
    const args = instanceArguments({}, { ...REQUEST, buildId: 'debian,debug-threads=on' }, 'tcg');
    assert.deepEqual(valuesOf('-name', args), ['debian,,debug-threads=on']);
  });

  test('QEMU’s arguments boot a kernel directly only if one is configured', () => {
    assert.ok(!instanceArguments({}, REQUEST, 'tcg').includes('-kernel'));
    const directBoot = { kernel: '/boot/vmlinuz', 'command-line': 'root=/dev/vda ro' };
    const args = instanceArguments({ 'direct-boot': directBoot }, REQUEST, 'tcg');
    assert.deepEqual(valuesOf('-kernel', args), ['/boot/vmlinuz']);
    assert.deepEqual(valuesOf('-append', args), ['root=/dev/vda ro']);
    assert.ok(!args.includes('-initrd'));
    const withInitrd = instanceArguments(
      { 'direct-boot': { ...directBoot, initrd: '/boot/initrd' } },
      REQUEST,
      'tcg',
    );
    assert.deepEqual(valuesOf('-initrd', withInitrd), ['/boot/initrd']);
  });
});

test('the forwarded port is read from QEMU’s reply, and connections in it are ignored', () => {
  const head =
    'Hub -1 (net0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n';
  const forward = '  TCP[HOST_FORWARD]  11       127.0.0.1 34423       10.0.2.15    22     0     0\r\n';
  const connection = '  TCP[ESTABLISHED]   12       127.0.0.1 50000       10.0.2.15    22     0     0\r\n';
  assert.equal(forwardedPort(head + connection + forward), 34_423);
  assert.equal(forwardedPort(head + connection), undefined);
});
