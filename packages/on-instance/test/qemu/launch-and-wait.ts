import { QemuInstanceProvider } from '../../src/qemu/qemu-instance-provider.ts';

/** Launches an instance of the image in the second argument, prints a line, and waits until it is killed. */
const [directory = '', image = ''] = process.argv.slice(2);
const provider = new QemuInstanceProvider({ name: 'local', directory, accelerator: 'tcg' });
const request = { buildId: 'debian-1', image, publicKey: 'ssh-ed25519 AAAA', port: 22, minRam: 64 };
const { id } = await provider.launch(request);
console.log(id);
setInterval(() => {}, 60_000);
