"""Commands that let the thread go on."""

from __future__ import annotations

from ..points import dim3
from .screen import Screen
from .words import Usage, index, numbers


class Going(Screen):
    """How to go on."""

    def do_continue(self, argument: str) -> bool:
        """continue

        Go on to the next breakpoint. Before the program has begun, begin it."""
        if self.stop is not None:
            self.stop.resume()
        return True

    def do_step(self, argument: str) -> bool:
        """step

        Go on to the next line of this thread, also in a function that it calls. Other threads run as they come to:
        those of its warp with it, others when it waits for them."""
        self._require().step()
        return True

    def do_next(self, argument: str) -> bool:
        """next

        Go on to the next line of this function."""
        self._require().next()
        return True

    def do_finish(self, argument: str) -> bool:
        """finish

        Go on until this function has returned."""
        stop = self._require()
        if len(stop._frames()) <= 1:
            self.say("This is the kernel itself: going on to its end.")
        stop.finish()
        return True

    def do_until(self, argument: str) -> bool:
        """until [LINE]

        Go on to a line behind this one, which leaves a loop; or to LINE or one behind it."""
        if argument and not argument.isdecimal():
            raise Usage("until takes the number of a line")
        self._require().until(int(argument or 0))
        return True

    def do_block(self, argument: str) -> bool:
        """block [N | x,y,z]

        Go on until a thread of that block comes to a line. Blocks run one after the other, in ascending order.
        Without a number, say which block this is."""
        stop = self._require()
        if not argument:
            self.say(f"block {index(stop.block)} of {index(stop.grid_dim)}")
            return False
        wanted = dim3(numbers(argument))
        if wanted == stop.block:
            return False
        x, y, z = stop.grid_dim
        order = [block[0] + x * (block[1] + y * block[2]) for block in (wanted, stop.block)]
        if not all(0 <= i < extent for i, extent in zip(wanted, (x, y, z), strict=True)):
            raise Usage(f"the grid has {x} x {y} x {z} blocks")
        if order[0] < order[1]:
            raise Usage(
                f"block {index(wanted)} has run already: set a breakpoint with 'block {argument}', and run again"
            )
        stop.resume()
        self.debugger._wanted_block = wanted
        self.debugger.interrupt()
        return True

    def do_kill(self, argument: str) -> bool:
        """kill

        End the kernel. The program gets CUDA_ERROR_LAUNCH_TIMEOUT."""
        self._require().end()
        return True

    def do_quit(self, argument: str) -> bool:
        """quit

        End the program."""
        self.quitting = True
        if self.stop is not None and self.stop.reason != "fault":
            self.stop.end()
        if self.leave is not None:
            self.leave()
        return True
